"""Sides of `bench peers`: Surefoot's own, one per engine, and those of other systems, which a checkout has."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from benchmarks.tasks import Task
from surefoot.benchmark.checkout import import_from_checkout
from surefoot.benchmark.configured import Training
from surefoot.benchmark.subject import Subject

if TYPE_CHECKING:
    from surefoot.settings.registry import Registry


class Side(Subject, Protocol):
    """A subject that builds itself from a task."""

    title: ClassVar[str]
    """For tables."""
    needs: ClassVar[tuple[str, ...]]
    """Packages of the extra `peers` that it imports; none for Surefoot's own sides."""

    def __init__(self, task: Task, threads: int) -> None: ...

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Whether it can do the same work."""


class SurefootSide(Training):
    """A whole run with one engine."""

    engine_kind: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, task: Task, threads: int) -> None:
        super().__init__(task.config(self.engine_kind, threads))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Surefoot runs them all."""
        return True


class SurefootNative(SurefootSide):
    """Whole rollouts in the C++ core."""

    engine_kind = "native"
    title: ClassVar[str] = "Surefoot native"

    @classmethod
    def fits(cls, task: Task) -> bool:
        """The core has Gymnasium's ids, not envs of other modules."""
        return ":" not in task.env


class SurefootLocal(SurefootSide):
    """Envs in the process that learns."""

    engine_kind = "local"
    title: ClassVar[str] = "Surefoot local"


class SurefootProcesses(SurefootSide):
    """Envs in a few workers."""

    engine_kind = "processes"
    title: ClassVar[str] = "Surefoot processes"


OURS: Mapping[str, type[Side]] = {side.engine_kind: side for side in (SurefootNative, SurefootLocal, SurefootProcesses)}


def peers() -> "Registry[Side]":
    """The other systems, from the folder `benchmarks/peers` of a checkout."""
    registry: Registry[Side] = import_from_checkout("benchmarks.peers").PEERS
    return registry


def find_side(name: str) -> type[Side]:
    """One of ours or a peer."""
    return OURS[name] if name in OURS else peers()[name]


def missing_packages(side: type[Side]) -> list[str]:
    """Packages that have to be installed before it can run."""
    return [package for package in side.needs if find_spec(package) is None]


def build(recipe: dict[str, Any]) -> Side:
    """The side of a recipe, in the process that it is measured in."""
    return find_side(recipe["side"])(Task(**recipe["task"]), recipe["threads"])
