"""Surefoot's own sides: one an engine."""

from typing import ClassVar

from surefoot.benchmark.configured import Training
from surefoot.benchmark.peers import PEERS
from surefoot.benchmark.tasks import Task


class SurefootSide(Training):
    """A whole run with one engine."""

    side: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, task: Task, threads: int) -> None:
        super().__init__(task.config(self.side, threads))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Surefoot runs them all."""
        return True


@PEERS.register("native")
class SurefootNative(SurefootSide):
    """Whole rollouts in the C++ core."""

    side = "native"
    title: ClassVar[str] = "Surefoot native"

    @classmethod
    def fits(cls, task: Task) -> bool:
        """The core has Gymnasium's ids, not envs of other modules."""
        return ":" not in task.env


@PEERS.register("local")
class SurefootLocal(SurefootSide):
    """Envs in the process that learns."""

    side = "local"
    title: ClassVar[str] = "Surefoot local"


@PEERS.register("processes")
class SurefootProcesses(SurefootSide):
    """Envs in a few workers."""

    side = "processes"
    title: ClassVar[str] = "Surefoot processes"
