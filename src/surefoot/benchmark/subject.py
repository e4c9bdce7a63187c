"""A subject of a benchmark: runs whole iterations and times their phases."""

from typing import Protocol

from surefoot.benchmark.window import Window


class Subject(Protocol):
    """Runs in a separate process, is warmed up, then measured in turns with other subjects."""

    def run(self, iterations: int) -> Window:
        """Run whole iterations, timed."""

    def close(self) -> None:
        """Release all resources."""
