"""What one iteration runs on the readable path: `python docs/reading_path.py` writes docs/tour.md's table and counts.

An iteration of CartPole is traced, with environments and a learner in Python and without the core's kernels. The table
lists every file whose functions ran and that the tour does not quote. The counts are printed: the functions that ran,
and the files that the trainer and these functions import.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from surefoot import PPO
from surefoot.native.kernels import readable_only
from surefoot.training.trainer import Trainer

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
TOUR = ROOT / "docs" / "tour.md"
BEGIN, END = "<!-- files: begin -->\n", "<!-- files: end -->\n"
SETTINGS: dict[str, Any] = {"engine": "local", "learner": "torch", "num_envs": 2, "num_steps": 64, "batch_size": 64}
STEPS = 512
ORDER = ("training", "rollout", "envs", "policies", "learning")
"""Folders in the order of the loop; the others follow."""


def traced() -> dict[Path, set[CodeType]]:
    """The functions that ran in the iterations of a short training run, by file."""
    found: dict[Path, set[CodeType]] = defaultdict(set)
    iterate = Trainer.iterate

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE):
            found[file].add(frame.f_code)

    def watched(trainer: Trainer) -> Any:
        sys.setprofile(note)
        try:
            return iterate(trainer)
        finally:
            sys.setprofile(None)

    with readable_only():
        agent = PPO("CartPole-v1", seed=1, **SETTINGS)
        Trainer.iterate = watched  # type: ignore[method-assign]
        try:
            agent.learn(STEPS, progress=False)
        finally:
            Trainer.iterate = iterate  # type: ignore[method-assign]
    return dict(found)


def imported(files: Iterable[Path]) -> set[Path]:
    """These files and all files of the package that they import when they are imported."""
    found: set[Path] = set()
    new = set(files)
    while new:
        found |= new
        new = {target for file in new for target in _imports(file)} - found
    return found


def _imports(file: Path) -> Iterator[Path]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name}" for name in names)]
        for name in names:
            place = SOURCE / name.replace(".", "/")
            yield from (one for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file())


def job(file: Path) -> str:
    """The first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].removesuffix(".")


def table(files: Iterable[Path]) -> str:
    """Markdown: files in the order of the loop, each with its job."""
    names = {file.relative_to(SOURCE / "surefoot").as_posix(): file for file in files}
    folders = [*ORDER, *sorted({name.partition("/")[0] for name in names} - set(ORDER))]
    lines = ["| file | its job |", "|---|---|"]
    for name in sorted(names, key=lambda name: (folders.index(name.partition("/")[0]), name)):
        lines.append(f"| `{name}` | {job(names[name])} |")
    return "\n".join(lines) + "\n"


def written(files: Iterable[Path]) -> str:
    """The tour with its table replaced."""
    head, _, rest = TOUR.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + table(set(files) - shown()) + END + rest.partition(END)[2]


def shown() -> set[Path]:
    """The files that the tour quotes."""
    return {ROOT / path for path in re.findall(r"<!-- quote: (\S+) ", TOUR.read_text(encoding="utf-8"))}


def _lines(files: Iterable[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def _lines_run(codes: Iterable[CodeType]) -> int:
    spans = {line for code in codes for line in range(code.co_firstlineno, _last(code) + 1)}
    return len(spans)


def _last(code: CodeType) -> int:
    return max(line for _, _, line in code.co_lines() if line is not None)


def main() -> None:
    """Write the table and print the counts."""
    found = traced()
    TOUR.write_text(written(found), encoding="utf-8")
    run = sum(map(_lines_run, found.values()))
    needed = imported({*found, SOURCE / "surefoot" / "training" / "trainer.py"})
    trainer = imported({SOURCE / "surefoot" / "training" / "trainer.py"})
    print(f"one iteration runs {sum(map(len, found.values()))} functions, {run:,} lines in {len(found)} files")
    print(f"training.trainer imports {len(trainer)} files, {_lines(trainer):,} lines")
    print(f"with the files that ran and what they import: {len(needed)} files, {_lines(needed):,} lines")


if __name__ == "__main__":
    main()
