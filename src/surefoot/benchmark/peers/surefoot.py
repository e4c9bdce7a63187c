"""Surefoot's own sides: one an engine."""

from typing import ClassVar

from surefoot.benchmark.configured import Training
from surefoot.benchmark.peers import PEERS
from surefoot.benchmark.tasks import Task


class SurefootSide(Training):
    """A whole run with one engine."""

    engine: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, task: Task, threads: int) -> None:
        super().__init__(task.config(self.engine, threads))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Surefoot runs them all."""
        return True


@PEERS.register("local")
class SurefootLocal(SurefootSide):
    """Envs in the process that learns."""

    engine = "local"
    title: ClassVar[str] = "Surefoot local"


@PEERS.register("processes")
class SurefootProcesses(SurefootSide):
    """Envs in a few workers."""

    engine = "processes"
    title: ClassVar[str] = "Surefoot processes"
