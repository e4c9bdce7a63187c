"""Whom `bench peers` compares: one file a peer, found by this folder's registry.

A peer is a `Subject` that builds itself from a task. It imports its package in its constructor, which runs in a process
of its own, so that listing peers needs none of them.
"""

from importlib.util import find_spec
from typing import ClassVar, Protocol

from surefoot.benchmark.subject import Subject
from surefoot.benchmark.tasks import Task
from surefoot.core.registry import Registry

EXTRA = "peers"


class Peer(Subject, Protocol):
    """One side of a comparison."""

    title: ClassVar[str]
    """For tables."""
    needs: ClassVar[tuple[str, ...]]
    """Packages of the extra `peers` that it imports; none for Surefoot's own sides."""

    def __init__(self, task: Task, threads: int) -> None: ...

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Whether it can do the same work."""


PEERS: Registry[Peer] = Registry("peer", __name__)


def missing_packages(peer: type[Peer]) -> list[str]:
    """What has to be installed before it can run."""
    return [package for package in peer.needs if find_spec(package) is None]


def use_torch_threads(threads: int) -> None:
    """So many; 0 leaves it at what the peer would use by itself."""
    import torch

    if threads:
        torch.set_num_threads(threads)
