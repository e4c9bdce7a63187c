"""Tables and files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from surefoot.benchmark.load import summarize_load
from surefoot.benchmark.report import MISSING, Occasion, Report, Table, show, write
from surefoot.errors import SurefootError

REPORT = Report(
    "train",
    "Training Thing-v0",
    [Table("Thing-v0", ["phase", "steps/s"], [["rollout", "1,000 ±3%"], ["a|b [red]", MISSING]])],
    ["Try pip install '.[peers]'."],
    {"subjects": [{"name": "one"}]},
    summarize_load(0.5, [0.4]),
)


def test_files_hold_what_is_needed_to_judge_and_repeat(tmp_path: Path) -> None:
    occasion = Occasion.now(["train", "Thing-v0", "--env.kwargs", "{a: 1}"])
    json_file, markdown_file = write(REPORT, occasion, tmp_path / "new" / "folder")
    record = json.loads(json_file.read_text())
    assert record["benchmark"] == "train"
    assert record["command"] == "surefoot bench train Thing-v0 --env.kwargs '{a: 1}'"
    assert record["load"]["is_busy"] is True
    assert record["subjects"] == [{"name": "one"}]
    assert {"torch", "gymnasium", "surefoot"} <= set(record["machine"]["versions"])
    text = markdown_file.read_text()
    for part in (
        occasion.command,
        occasion.date,
        "torch ",
        "BUSY",
        "| rollout | 1,000 ±3% |",
        "a\\|b",
        ".[peers]",
    ):
        assert part in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_screen(width: int) -> None:
    console = Console(width=width, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    show(REPORT, console)
    console.file.close()
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "1,000 ±3%" in text
    assert "BUSY" in text
    assert ".[peers]" in text
    assert "[red]" in text


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SurefootError, match="cannot write"):
        write(REPORT, Occasion.now([]), tmp_path / "file")


WIDE = Table(
    "Scaling",
    ["number of envs", "engine", "steps a second", "milliseconds a rollout", "speed-up over the first", "peak MB"],
    [["4096", "processes", "12,345,678 ±12%", "1,234.5 ±12%", "1.68 (1.21-1.86)", "1,234"]],
)


@pytest.mark.parametrize("width", [80, 46])
def test_numbers_are_never_broken(width: int) -> None:
    """80 columns hold a table whose headings break; a terminal that is too narrow gets a line a number."""
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    show(replace(REPORT, tables=[WIDE]), console)
    console.file.close()
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert all(cell in text for cell in WIDE.rows[0])
    assert ("steps a second: 12,345,678 ±12%" in text) == (width == 46)
