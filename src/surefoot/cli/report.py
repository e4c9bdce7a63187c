"""`surefoot report RUN ...`"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.arguments import parse
from surefoot.core.errors import ConfigError

FILE_NAME = "report.html"


def main(arguments: list[str]) -> int:
    """Parse, then write the page."""
    return parse(write_report, "report", arguments)


def write_report(runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = (), /, output: Path | None = None) -> int:
    """Write an HTML report about one or more runs; it opens in any browser, offline.

    Args:
        runs: run directories; runs that differ only in their seed are shown as one curve; or the directory of one
            population
        output: the file to write; default: report.html in the run directory, or in the current directory for
            several runs
    """
    from surefoot.inspection.report.page import report_page
    from surefoot.inspection.run_record import read_run

    if not runs:
        raise ConfigError(["no run directory given; pass at least one, such as runs/CartPole-v1"])
    is_one = len({run.resolve() for run in runs}) == 1
    target = output or (runs[0] / FILE_NAME if is_one else Path(FILE_NAME))
    _refuse_other_file(target)
    text = _population_page(runs[0]) if is_one else None
    text = text or report_page([read_run(run) for run in runs])
    _write(target, text)
    print(f"report    {target}  ({len(text.encode()) / 1e6:.1f} MB; open it in a browser)")
    return 0


def _population_page(path: Path) -> str | None:
    """The page about a population, if there is one in this directory."""
    if not (path / "population.yaml").is_file():
        return None
    from surefoot.population.page import population_page

    return population_page(path)


def _refuse_other_file(target: Path) -> None:
    """Only an earlier report may be overwritten."""
    from surefoot.inspection.report.page import GENERATOR

    if target.is_dir():
        raise ConfigError([f"--output: {target} is a directory; pass a file, such as {target / FILE_NAME}"])
    if not target.exists():
        return
    with target.open("rb") as file:
        is_report = f'content="{GENERATOR}"'.encode() in file.read(1000)
    if not is_report:
        raise ConfigError([f"--output: {target} exists and is not a report; remove it or choose another file"])


def _write(target: Path, text: str) -> None:
    """Write to a temporary file first: a full disk leaves an earlier report intact."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(target)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise ConfigError([f"--output: cannot write {target}: {error.strerror}"]) from error
