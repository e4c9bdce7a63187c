"""Output of benchmark results: files, the screen, or both."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.errors import ConfigError

if TYPE_CHECKING:
    from surefoot.benchmark.report import Report

STDOUT = "-"


@dataclass(frozen=True)
class Output:
    """Output files of a benchmark."""

    json: str | None = None
    """write the results as JSON to this file; without a value or with - print JSON instead of tables"""
    output: Path | None = None
    """write <benchmark>.json and <benchmark>.md to this directory"""

    def __post_init__(self) -> None:
        """Reject paths that are not writable before anything is measured."""
        folders = {} if self.output is None else {"--output": self.output}
        if self.json is not None and self.json != STDOUT:
            folders["--json"] = Path(self.json).parent
        for option, folder in folders.items():
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"{option}: {folder} is not writable ({error.strerror}); choose another path"
                ) from error


def say(line: str) -> None:
    """Print progress to stderr, so that it does not mix with results."""
    print(line, file=sys.stderr, flush=True)


def deliver(report: "Report", arguments: list[str], output: Output) -> int:
    """Write the files first, so that no measurement is lost, then print."""

    from surefoot.benchmark.report import Occasion, show, to_json, write, write_text
    from surefoot.output.terminal import Terminal

    occasion = Occasion.now(arguments)
    written = [] if output.output is None else write(report, occasion, output.output)
    if output.json is not None and output.json != STDOUT:
        written.append(Path(output.json))
        write_text(written[-1], to_json(report, occasion) + "\n")
    if output.json == STDOUT:
        print(to_json(report, occasion))
    else:
        show(report, Terminal())
    for file in written:
        say(f"wrote {file}")
    return 0
