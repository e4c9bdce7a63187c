"""Benchmark results as tables (terminal and Markdown) and as JSON, with a description of the machine."""

import json
import os
import platform
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from surefoot.benchmark.load import Load
from surefoot.errors import SurefootError
from surefoot.machine.ram import machine_ram
from surefoot.version import VERSION

MISSING = "\N{EN DASH}"
WIDEST = 10_000
"""Wider than any terminal, to measure the natural width of a table."""
PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "envpool")


@dataclass(frozen=True)
class Table:
    """Cells are text; the first column names the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_markdown(self) -> str:
        """The table as Markdown, with a heading."""
        lines = [f"## {self.title}", "", _line(self.columns), "|---" + "|---:" * (len(self.columns) - 1) + "|"]
        return "\n".join([*lines, *map(_line, self.rows)])

    def to_rich(self) -> RichTable:
        """The table for a terminal: headings and row names may wrap, numbers never do."""
        table = RichTable(
            title=Text(self.title),  # plain text: rich would interpret brackets as markup
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            collapse_padding=True,
        )
        for place, heading in enumerate(self.columns):
            cells = [row[place] for row in self.rows]
            lines = _broken(heading, max(map(len, cells), default=0))
            texts = cells if place else [word for cell in cells for word in cell.split()]
            narrowest = max(map(len, [*texts, *lines]))
            text = Text("\n".join(lines))
            table.add_column(text, justify="right" if place else "left", min_width=narrowest, vertical="bottom")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def to_lines(self) -> str:
        """For a terminal that is too narrow for the table: one line per number."""
        lines = [self.title]
        for name, *cells in self.rows:
            lines += [name, *(f"  {column}: {cell}" for column, cell in zip(self.columns[1:], cells, strict=True))]
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """The result of a benchmark: `notes` are sentences, `results` the numbers."""

    name: str
    title: str
    tables: Sequence[Table]
    notes: Sequence[str]
    results: dict[str, Any]
    load: Load


@dataclass(frozen=True)
class Occasion:
    """Date, machine and command of a report."""

    command: str
    date: str
    machine: dict[str, Any]

    @classmethod
    def now(cls, arguments: Sequence[str]) -> "Occasion":
        """This machine, now."""
        command = shlex.join(["surefoot", "bench", *arguments])
        return cls(command, datetime.now(UTC).isoformat(timespec="seconds"), machine())


def show(report: Report, console: Console) -> None:
    """Print the report."""
    for table in report.tables:
        rich = table.to_rich()
        fits = Measurement.get(console, console.options.update(max_width=WIDEST), rich).minimum <= console.width
        console.print(rich if fits else Text(table.to_lines() + "\n"))
    for note in [*report.notes, report.load.describe()]:
        console.print(Text(note))


def to_json(report: Report, occasion: Occasion) -> str:
    """The complete report as JSON."""
    record = {
        "benchmark": report.name,
        **asdict(occasion),
        "load": {**asdict(report.load), "is_busy": report.load.is_busy},
        **report.results,
        "notes": list(report.notes),
    }
    return json.dumps(record, indent=1)


def to_markdown(report: Report, occasion: Occasion) -> str:
    """The complete report as Markdown."""
    blocks = [f"# {report.title}", f"`{occasion.command}`", f"{occasion.date}. {describe_machine(occasion.machine)}."]
    blocks.append(report.load.describe())
    blocks += [table.to_markdown() for table in report.tables]
    blocks += report.notes
    return "\n\n".join(blocks) + "\n"


def write(report: Report, occasion: Occasion, folder: Path) -> list[Path]:
    """Write `<name>.json` and `<name>.md` to a directory."""
    contents = {".json": to_json(report, occasion) + "\n", ".md": to_markdown(report, occasion)}
    files = []
    for suffix, text in contents.items():
        files.append(folder / f"{report.name}{suffix}")
        write_text(files[-1], text)
    return files


def write_text(file: Path, text: str) -> None:
    """Write a file; its directory is created if needed."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SurefootError(f"cannot write {file}: {error.strerror}") from error


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _broken(heading: str, width: int) -> list[str]:
    """A heading wrapped to the width of its cells, as far as its words allow."""
    width = max(width, *map(len, heading.split()))
    return textwrap.wrap(heading, width, break_long_words=False, break_on_hyphens=False)


def machine() -> dict[str, Any]:
    """Processor, cores, RAM and relevant versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(machine_ram().total / 2**30),
        "python": platform.python_version(),
        "versions": {"surefoot": VERSION, **_installed(PACKAGES)},
    }


def describe_machine(facts: dict[str, Any]) -> str:
    """The facts in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    hardware = f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB"
    return f"{hardware}; Python {facts['python']}, {versions}"


def _installed(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()
