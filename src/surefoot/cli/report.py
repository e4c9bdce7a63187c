"""`surefoot report RUN ...`"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from surefoot.cli.lines import tell
from surefoot.errors import ConfigError
from surefoot.storage.files import beginning

FILE_NAME = "report.html"
_OTHERS = {"sweep.db": "sweep", "population.yaml": "population"}
"""Directories that are not those of runs, by a file in them."""


def run(runs: tuple[Path, ...] = (), /, output: Path | None = None) -> int:
    """Write an HTML report about one or more runs, a sweep or a population; it opens in any browser, offline.

    Args:
        runs: run directories, or folders with several seeds; runs that differ only in their seed are shown as one
            curve; or the directory of one sweep or population
        output: the file to write; default: report.html in the run directory, or in the current directory for
            several runs
    """
    if not runs:
        raise ConfigError("no run directory given; pass at least one, such as runs/CartPole-v1")
    is_one = len({run.resolve() for run in runs}) == 1
    target = output or (runs[0] / FILE_NAME if is_one else Path(FILE_NAME))
    refuse_other_file(target)
    print_written(target, runs)
    return 0


def print_written(target: Path, runs: Sequence[Path]) -> None:
    """Write the page and say where it is."""
    text = _page(runs, target.parent)
    write_page(target, text)
    tell("report", f"{target}  ({len(text.encode()) / 1e6:.1f} MB; open it in a browser)")


def _page(runs: Sequence[Path], folder: Path) -> str:
    for run in runs:
        what = next((what for file, what in _OTHERS.items() if (run / file).is_file()), None)
        if what is not None and len(runs) > 1:
            raise ConfigError(f"{run} is a {what}; its report is about one directory, so pass only this one")
        if what == "sweep":
            from surefoot.sweep.report import sweep_page

            return sweep_page(run)
        if what == "population":
            from surefoot.population.page import population_page

            return population_page(run)
    from surefoot.inspection.report.page import report_page
    from surefoot.inspection.run_record import read_run
    from surefoot.inspection.seeds_folder import runs_of

    return report_page([read_run(run) for run in runs_of(runs)], folder=folder)


def refuse_other_file(target: Path) -> None:
    """Only an earlier report may be overwritten."""
    from surefoot.inspection.report.document import GENERATOR

    if target.is_dir():
        raise ConfigError(f"--output: {target} is a directory; pass a file, such as {target / FILE_NAME}")
    if not target.exists():
        return
    if f'content="{GENERATOR}"'.encode() not in beginning(target, 1000):
        raise ConfigError(f"--output: {target} exists and is not a report; remove it or choose another file")


def write_page(target: Path, text: str) -> None:
    """Write to a temporary file first: a full disk leaves an earlier report intact."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise ConfigError(f"--output: cannot write {target}: {error.strerror}") from error
