"""Engines step the envs, in this process or elsewhere. One file per engine; all engines give the same results."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_map
from surefoot.envs.blueprint import Blueprint, shares
from surefoot.envs.protocol import ArrayTree, VecEnv
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.parameters import Parametrized
from surefoot.envs.protocol.shard import Shard
from surefoot.settings.registry import Registry

if TYPE_CHECKING:  # workers start faster without the config's validation
    from surefoot.settings.config import RolloutConfig

GROUPS_FROM = 32
"""Number of envs from which two groups are faster, if envs step while the policy acts: below it, the second forward
pass costs more than it hides. Halves of 16 rows are also large enough for matrix products to round like full ones."""

engines: Registry["Engine"] = Registry(
    "engine", "surefoot.envs.engines", "rollout.engine", "Engine", automatic=("native", "local")
)


@dataclass(frozen=True)
class RowSpecs:
    """The specs of every row."""

    obs: ObsSpec
    action: ArraySpec
    mask_size: int
    rows_per_env: int
    declared: Declared = field(default_factory=Declared)
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(shard: Shard, num_envs: int) -> "RowSpecs":
        """The specs of a shard."""
        rows_per_env = shard.num_rows // num_envs
        specs = (shard.obs_spec, shard.action_spec, shard.mask_size)
        return RowSpecs(*specs, rows_per_env, shard.declared, shard.left_out)


class Engine(Parametrized, VecEnv):
    """Base class of engines: built from a blueprint of the envs."""

    num_rows: int
    obs_spec: ObsSpec
    action_spec: ArraySpec
    mask_size: int
    final_obs: ArrayTree
    metrics: dict[str, str]
    left_out: tuple[str, ...] = ()
    first_row: int = 0
    restarts: int = 0
    name: ClassVar[str]
    takes_any_env: ClassVar[bool] = True
    """False if the engine supports only certain envs; its constructor raises a NativeError for others."""
    keeps_cores_busy: ClassVar[bool] = True
    """Whether envs step in other threads or processes while the policy acts."""
    steps_here: ClassVar[bool] = True
    """False if the envs are on other machines, whose memory they take."""
    why_not_native: str = ""
    """The reason if the native engine was requested but is not available."""

    def __init__(self, blueprint: Blueprint, config: "RolloutConfig") -> None:
        raise NotImplementedError

    @property
    def groups(self) -> tuple[slice, ...]:
        """The rows of each group."""
        return self._groups

    def _lay_out(self, groups: Sequence[range], specs: RowSpecs, first_env: int) -> None:
        self.first_row = first_env * specs.rows_per_env
        self.obs_spec, self.action_spec, self.mask_size = specs.obs, specs.action, specs.mask_size
        self.metrics, self.left_out = specs.declared.metrics, specs.left_out
        self._declare_parameters(specs.declared.parameters, specs.rows_per_env)
        self._groups = tuple(rows_of(envs, specs.rows_per_env) for envs in groups)
        self.num_rows = self._groups[-1].stop

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def env_groups(num_envs: int, config: "RolloutConfig", overlaps: bool) -> list[range]:
    """The envs of each group; `overlaps` is whether envs step while the policy acts for another group."""
    count = config.groups or (2 if overlaps and num_envs >= GROUPS_FROM else 1)
    return shares(range(num_envs), min(count, num_envs))


def rows_of(envs: range, rows_per_env: int) -> slice:
    """The rows of a range of envs."""
    return slice(envs.start * rows_per_env, envs.stop * rows_per_env)


def rows_of_tree(tree: ArrayTree, rows: slice) -> ArrayTree:
    """A view of some rows."""
    some: ArrayTree = tree_map(lambda leaf: leaf[rows], tree)
    return some


def joined_state(states: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The state of all envs from those of groups of them, or None if one could not be saved."""
    known = [state for state in states if state is not None]
    if len(known) < len(states):
        return None
    return {name: _joined([state[name] for state in known]) for name in known[0]}


def _joined(states: Sequence[Any]) -> Any:
    """Native envs are rows of one array, others are entries of a list."""
    if isinstance(states[0], np.ndarray):
        return np.concatenate(states)
    return [env for envs in states for env in envs]


def state_of_envs(state: dict[str, Any], envs: range) -> dict[str, Any]:
    """The state of some of the envs."""
    return {name: state[name][envs.start : envs.stop] for name in ("envs", "rows") if name in state}
