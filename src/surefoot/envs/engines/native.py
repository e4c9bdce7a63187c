"""The `native` engine: environments in C++, stepped on all cores, without Python."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.tree import tree_items
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, RowSpecs, engines
from surefoot.envs.native_specs import core_action_spec, core_declared, core_obs_spec, set_in_core
from surefoot.envs.native_task import native_task, open_engine, seed_words
from surefoot.envs.protocol import ArrayTree, Slot, new_slot
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.shard import env_seeds
from surefoot.errors import CheckpointError, EnvError, NativeError
from surefoot.settings.config import RolloutConfig

if TYPE_CHECKING:
    from surefoot.native import Engine as CoreEngine


@engines.register("native")
class NativeEngine(Engine):
    """Gives what `local` gives, bit for bit. Any policy can be stepped through it; whole rollouts run in `core`."""

    name = "native"
    takes_any_env = False

    def __init__(self, blueprint: Blueprint, config: RolloutConfig) -> None:
        first = blueprint.factories[0]
        if any(other is not first for other in blueprint.factories):
            raise NativeError("the core does not create envs from a list of factories")
        if blueprint.metrics:
            raise NativeError(f"env.metrics asks for {', '.join(blueprint.metrics)}, and native envs have no infos")
        core = open_engine(native_task(first), blueprint.num_envs, config.workers, blueprint.truncation_as_termination)
        self._core: CoreEngine | None = core
        self._seed = blueprint.seed
        obs, action, declared = core_obs_spec(core), core_action_spec(core), core_declared(core)
        specs = RowSpecs(obs, action, core.mask_size, core.num_agents, declared)
        self._numbers = range(blueprint.first_env, blueprint.first_env + blueprint.num_envs)
        self._lay_out([range(blueprint.num_envs)], specs, blueprint.first_env)
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs
        self._seeds = env_seeds(self._seed, self._numbers, 0)
        shapes = [(self.num_rows, size) for size in core.obs_sizes]
        self._obs, self._final_obs = [np.zeros(shape) for shape in shapes], [np.zeros(shape) for shape in shapes]
        self._reward = np.zeros(self.num_rows)
        self._actions: NDArray[Any]

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Start every env from its own seed, the one that Gymnasium's would get."""
        self._seeds = env_seeds(self._seed, self._numbers, step)
        words = np.array([seed_words(seed) for seed in self._seeds], dtype=np.uint64)
        self.core.reset(words, self._obs, slot.action_mask)
        _copy(self._obs, slot.obs)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Keep the actions: the step is made when it is waited for."""
        dtype = np.float32 if self.action_spec.kind == "box" else np.int64
        self._actions = np.ascontiguousarray(actions, dtype=dtype).reshape(self.num_rows, -1)

    def receive(self, group: int, slot: Slot) -> None:
        """Make the step, on all threads."""
        outcome: dict[str, NDArray[Any]] = {
            "reward": self._reward,
            "terminated": slot.terminated,
            "truncated": slot.truncated,
            "valid": slot.valid,
        }
        if slot.metrics.shape[1]:
            outcome["metrics"] = slot.metrics
        try:
            self.core.step(self._actions, self._obs, self._final_obs, outcome, slot.action_mask)
        except ValueError as error:
            raise EnvError(f"the native envs rejected their actions: {error}") from error
        _copy(self._obs, slot.obs)
        slot.reward[:] = self._reward
        if slot.ended.any():
            _copy(self._final_obs, self.final_obs)

    @property
    def core(self) -> "CoreEngine":
        """The core's own engine."""
        if self._core is None:
            raise NativeError("the envs are closed")
        return self._core

    @property
    def threads(self) -> int:
        """How many step the envs."""
        return self.core.threads

    def describe(self, row: int) -> str:
        """Env index, agent and seed."""
        env, agent = divmod(row, self.core.num_agents)
        which = f", agent {agent}" if self.core.num_agents > 1 else ""
        return f"env {self._numbers[env]}{which} (seed {self._seeds[env]})"

    def save_state(self) -> dict[str, Any] | None:
        """All envs in one array; as whole numbers, because some of its bits would be NaN in another type."""
        return self._with_parameters({"rows": self.core.save().view(np.int64)})

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from saved envs; if these envs cannot have saved the state, nothing changes."""
        rows = self._checked_rows(state)
        self._restore_from(state)
        self.core.load(rows)

    def _checked_rows(self, state: dict[str, Any]) -> NDArray[np.float64]:
        rows = state.get("rows")
        if not isinstance(rows, np.ndarray) or rows.dtype != np.int64:
            raise CheckpointError("the saved state of the native envs must have an int64 array 'rows'")
        states = np.ascontiguousarray(rows).view(np.float64)
        try:
            self.core.check(states)
        except ValueError as error:
            raise CheckpointError(f"the native envs cannot continue from their saved state: {error}") from error
        return states

    def _apply_parameters(self, values: Values, before: Values) -> None:
        """Give checked values to the core; if an env refuses one, all envs keep those they had."""
        set_in_core(self.core, values, self.parameters)

    def close(self) -> None:
        """End the threads."""
        self._core = None


def _copy(leaves: list[NDArray[np.float64]], target: ArrayTree) -> None:
    for read, (_, leaf) in zip(leaves, tree_items(target), strict=True):
        leaf[...] = read.reshape(leaf.shape)
