"""Keeps the quotes in docs equal to the source: `python docs/quote.py` rewrites them, `--check` only looks.

A quote is a comment `<!-- quote: PATH MARKER -->` followed by a code block; the source has `# tour: MARKER` and
`# tour: end` around the lines (`//` in C++). The marker `*` quotes the whole file. In Python, names of functions and
methods can be quoted without a mark in the source: `<!-- quote: PATH function,Class.method -->`.
"""

import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
_QUOTE = re.compile(r"(<!-- quote: (\S+) (\S+) -->\n```(?:python|cpp|xml)\n)(.*?)(```)", re.DOTALL)


def quoted(path: str, marker: str) -> str:
    """The lines of a source file between a marker and the next end."""
    source = (ROOT / path).read_text(encoding="utf-8")
    if marker == "*":
        return source
    lines = rf"^ *(?:#|//) tour: {re.escape(marker)}\n(.*?)^ *(?:#|//) tour: end$"
    found = re.search(lines, source, re.DOTALL | re.MULTILINE)
    if found is not None:
        return textwrap.dedent(found.group(1)).strip() + "\n"
    definitions = _definitions(source) if path.endswith(".py") else {}
    names = marker.split(",")
    if not definitions.keys() >= set(names):
        raise LookupError(f"{path} has no lines marked '# tour: {marker}', and no function of this name")
    return "\n".join(definitions[name] for name in names)


def _definitions(source: str) -> dict[str, str]:
    """The text of every function, class and method of a Python file, by its qualified name."""
    lines = source.splitlines(keepends=True)
    found = {}

    def collect(nodes: list[ast.stmt], prefix: str) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                found[prefix + node.name] = textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
                if isinstance(node, ast.ClassDef):
                    collect(node.body, f"{prefix}{node.name}.")

    collect(ast.parse(source).body, "")
    return found


def refreshed(text: str) -> str:
    """A page with every quote brought up to date."""
    return _QUOTE.sub(lambda match: match.group(1) + quoted(match.group(2), match.group(3)) + match.group(5), text)


def main() -> int:
    """Rewrite or check all pages."""
    stale = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if refreshed(text) != text:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(refreshed(text), encoding="utf-8")
    print(f"quotes brought up to date in: {', '.join(stale) or 'none'}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
