"""The pages of docs/extend, read as the tests use them: the YAML and the commands of each example."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "extend"
EXAMPLES = FOLDER / "examples"
_EXAMPLE = re.compile(
    r"<!-- quote: docs/extend/examples/(\w+)\.py \* -->\n"
    r"```python\n(?:(?!```).)*```\n+```yaml\n(.*?)```\n+```bash\n(.*?)```",
    re.DOTALL,
)


@dataclass(frozen=True)
class Shown:
    """One example of a page: its YAML, and the arguments of the two commands that use it."""

    module: str
    yaml: str
    with_file: tuple[str, ...]
    with_flags: tuple[str, ...]

    @property
    def yaml_name(self) -> str:
        return self.with_file[self.with_file.index("--config") + 1]


def shown(page: Path) -> list[Shown]:
    """The examples of a page, in order."""
    found = []
    for module, yaml, commands in _EXAMPLE.findall(page.read_text(encoding="utf-8")):
        lines = [shlex.split(line) for line in commands.replace("\\\n", " ").splitlines()]
        assert [line[:2] for line in lines] == [["surefoot", "train"]] * 2, (page.name, lines)
        found.append(Shown(module, yaml, tuple(lines[0][1:]), tuple(lines[1][1:])))
    return found


BY_MODULE = {example.module: example for page in sorted(FOLDER.glob("*.md")) for example in shown(page)}
