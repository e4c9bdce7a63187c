"""A blueprint creates any range of a run's envs, in this process or another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol.calls import Calls, construct
from surefoot.envs.protocol.shard import Shard


@dataclass(frozen=True)
class Blueprint:
    """Sent to worker processes, each of which creates its own envs."""

    factories: Sequence[Callable[[], Any]]
    seed: int
    truncation_as_termination: bool = False
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Info keys that are metrics, in addition to those that the envs declare."""
    first_env: int = 0
    """The number of the first env among all envs of a run, on which seeds depend (S13, docs/semantics.md)."""

    @property
    def num_envs(self) -> int:
        """Total number of envs."""
        return len(self.factories)

    def make(self, envs: range, calls: Calls | None = None) -> Shard:
        """A range of the envs, numbered and seeded as in the whole run; the first env selects the adapter."""
        calls = calls or Calls()
        calls.begin(0)
        number = self.first_env + envs.start
        first = construct(self.factories[envs.start], number)
        factories = [lambda: first, *self.factories[envs.start + 1 : envs.stop]]
        made = (factories, self.seed, self.truncation_as_termination, number, calls, self.metrics)
        return PettingZooEnvs(*made) if is_parallel_env(first) else GymnasiumEnvs(*made, is_first=envs.start == 0)


def shares(whole: range, count: int) -> list[range]:
    """A range split into ranges of nearly equal length, the longer ones first."""
    size, longer = divmod(len(whole), count)
    edges = [whole.start + number * size + min(number, longer) for number in range(count + 1)]
    return [range(begin, end) for begin, end in pairwise(edges)]
