"""What is measured: something that runs whole iterations and says how long their phases took."""

from typing import Protocol

from surefoot.benchmark.window import Window


class Subject(Protocol):
    """Lives in a process of its own, is warmed up, then measured in turns with others."""

    def run(self, iterations: int) -> Window:
        """So many whole iterations, timed."""

    def close(self) -> None:
        """Release everything."""
