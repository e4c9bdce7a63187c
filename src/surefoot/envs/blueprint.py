"""What a run's envs are made from: any stretch of them can be made, in this process or in another."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from surefoot.envs.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.shard import Calls, Shard


@dataclass(frozen=True)
class Blueprint:
    """Travels to worker processes, so that each makes its own envs."""

    factory: Callable[[], Any]
    num_envs: int
    seed: int
    truncation_as_termination: bool = False

    def make(self, envs: range, calls: Calls | None = None) -> Shard:
        """Some of the envs, numbered and seeded as they are in the whole."""
        factories = [self.factory] * len(envs)
        return GymnasiumEnvs(factories, self.seed, self.truncation_as_termination, envs.start, calls)


def shares(whole: range, parts: int) -> list[range]:
    """A range cut into parts of nearly equal length, the longer ones first."""
    size, longer = divmod(len(whole), parts)
    edges = [whole.start + part * size + min(part, longer) for part in range(parts + 1)]
    return [range(begin, end) for begin, end in pairwise(edges)]
