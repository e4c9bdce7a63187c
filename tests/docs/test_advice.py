"""Sentences that recommend a command, an option or a setting name one that exists: in errors, logs, help and docs."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel

from surefoot.cli.main import COMMANDS
from surefoot.settings.config import Config

ROOT = Path(__file__).parents[2]
_COMMAND = re.compile(r"(?<![\w./-])surefoot ((?!COMMAND)[a-z]+)((?: +[^\s'\"`;|)#]+)*)")
_OPTION = re.compile(r"(?<![\w-])--([a-z][\w-]*(?:\.[\w.]+)*)")
_SECTIONS = "|".join(Config.model_fields)
_SETTING = re.compile(rf"(?<![\w./\"-])({_SECTIONS})((?:\.[a-z_]+)+)(?![\w(./-])")
_OF_OTHERS = frozenset({"help", "debug", "version", "constraint", "editable", "logdir", "section.key"})
"""Options of every command, of programs that are named beside ours, and what stands for a setting."""
_NO_SETTINGS = frozenset({"log.txt", "policy.pth", "env.agents", "env.possible_agents"})
"""What looks like one."""
_TABLES = frozenset({"old_settings.py", "traces.py"})
"""Former names of settings, and style sheets."""


@cache
def _options() -> dict[str, frozenset[str]]:
    """By command, from the page that a test holds equal to the help."""
    parts = re.split(
        r"^###? surefoot (.+)$", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    found: dict[str, set[str]] = {}
    for command, text in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(command.split()[0], set()).update(re.findall(r"^\| `--([\w-]+)", text, re.MULTILINE))
    return {command: frozenset(options) for command, options in found.items()}


@cache
def _all_options() -> frozenset[str]:
    return _OF_OTHERS.union(*_options().values())


def _is_setting(name: str) -> bool:
    """Whether it is in the config, or in a part of it, whose kinds have settings of their own."""
    path, model = name.replace("-", "_").split("."), Config
    if path[0] in ("population", "sweep"):  # sections of their own files
        return len(path) == 2
    for depth, key in enumerate(path):
        if key not in model.model_fields:
            return depth > 1
        inner = model.model_fields[key].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return True
        model = inner
    return True


def _strings(source: Path) -> Iterator[tuple[int, str]]:
    """String literals with their lines; what an f-string fills in becomes X."""
    nodes = list(ast.walk(ast.parse(source.read_text(encoding="utf-8"))))
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    if source.parent.name != "cli":  # docstrings of commands are their help
        inside |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def _of_commands(text: str) -> list[str]:
    """Options that the commands of a text lack."""
    return [
        f"surefoot {command} has no option --{name}"
        for command, rest in _COMMAND.findall(text)
        if command in COMMANDS
        for name in _OPTION.findall(rest)
        if name not in _options()[command] | _OF_OTHERS and not _is_setting(name)
    ]


def _problems(text: str) -> list[str]:
    found = _of_commands(text)
    for name in _OPTION.findall(text):
        if name not in _all_options() and not _is_setting(name):
            found.append(f"there is no option --{name}")
    for section, rest in _SETTING.findall(text):
        if f"{section}{rest}" not in _NO_SETTINGS and not _is_setting(f"{section}{rest}"):
            found.append(f"there is no setting {section}{rest}")
    return found


def test_messages_recommend_what_exists() -> None:
    sources = [source for source in sorted((ROOT / "src").rglob("*.py")) if source.name not in _TABLES]
    said = [(source.name, line, text) for source in sources for line, text in _strings(source) if " " in text]
    assert len(said) > 1000
    assert [(*where, problem) for *where, text in said for problem in _problems(text)] == []


def test_pages_recommend_what_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [(page.name, line) for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    assert [(*one, problem) for one in lines if "gama" not in one[1] for problem in _of_commands(one[1])] == []


def test_an_option_that_a_command_lacks_is_found() -> None:
    assert _problems("run 'surefoot report X --trust'") == ["surefoot report has no option --trust"]
    assert _problems("set train.total_steps") == ["there is no setting train.total_steps"]
    assert _problems("'surefoot resume RUN --trust' with train.steps, rollout.engine.address or --train.steps 5") == []
