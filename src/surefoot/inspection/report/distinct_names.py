"""Names that tell runs apart on a page, even where their folders are called alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.inspection.run_record import RunRecord


@dataclass(frozen=True)
class NamedRun(RunRecord):
    """A run under a name that no other run of the page has."""

    shown_name: str

    @property
    def name(self) -> str:
        """The end of its path that is its own."""
        return self.shown_name


def with_distinct_names(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Each run once, named by as many of its folders as it takes to be unique."""
    once = list({run.path.resolve(): run for run in runs}.values())
    parts = [run.path.resolve().parts for run in once]
    named: list[RunRecord] = []
    for run, own in zip(once, parts, strict=True):
        length = next(
            length
            for length in range(1, len(own) + 1)
            if sum(other[-length:] == own[-length:] for other in parts) == 1 or length == len(own)
        )
        named.append(NamedRun(run.path, run.config, run.records, "/".join(own[-length:])))
    return named
