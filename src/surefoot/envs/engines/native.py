"""The `native` engine: environments of the C++ core, stepped on all cores, without Python."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.core.config import RolloutConfig
from surefoot.core.errors import NativeError
from surefoot.core.philox import Stream, derived_seed
from surefoot.core.tree import tree_items
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, RowSpecs, engines
from surefoot.envs.native import open_engine, seed_words
from surefoot.envs.protocol import ArrayTree, Slot, choices, new_slot
from surefoot.envs.protocol.spaces import array_spec, obs_spec

if TYPE_CHECKING:
    from surefoot.native import Engine as CoreEngine


@engines.register("native")
class NativeEngine(Engine):
    """Gives what `local` gives, bit for bit. Any policy can be stepped through it; whole rollouts run in `core`."""

    name = "native"
    takes_any_env = False

    def __init__(self, blueprint: Blueprint, config: RolloutConfig) -> None:
        factory = _factory(blueprint)
        if blueprint.metrics:
            raise NativeError(f"env.metrics asks for {', '.join(blueprint.metrics)}, and native envs have no infos")
        self._seed = blueprint.seed
        self._core: CoreEngine | None = open_engine(
            factory, blueprint.num_envs, config.workers, blueprint.truncation_as_termination
        )
        one = factory()
        obs, action = obs_spec(one.observation_space), array_spec(one.action_space, "action")
        one.close()
        _check_layout(self.core, [(key, part.size) for key, part in tree_items(obs)], action.size)
        mask_size = choices(action) if self.core.mask_size else 0
        self._lay_out([range(blueprint.num_envs)], RowSpecs(obs, action, mask_size, 1))
        self.final_obs = new_slot(self.num_rows, obs, 0).obs
        self._seeds = self._derive_seeds(0)
        parts = [(self.num_rows, size) for _, size in self.core.obs_parts]
        self._obs, self._final_obs = [np.zeros(part) for part in parts], [np.zeros(part) for part in parts]
        self._reward = np.zeros(self.num_rows)
        self._actions: NDArray[Any]

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Start every env anew from its own seed, the one that Gymnasium's would get."""
        self._seeds = self._derive_seeds(step)
        words = np.array([seed_words(seed) for seed in self._seeds], dtype=np.uint64)
        self.core.reset(words, self._obs, slot.action_mask)
        _copy(self._obs, slot.obs)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Keep the actions: the step is made when it is waited for."""
        dtype = np.float32 if self.action_spec.kind == "box" else np.int64
        self._actions = np.ascontiguousarray(actions, dtype=dtype).reshape(self.num_rows, -1)

    def receive(self, group: int, slot: Slot) -> None:
        """Make the step, on all threads."""
        outcome = {"reward": self._reward, "terminated": slot.terminated, "truncated": slot.truncated}
        self.core.step(self._actions, self._obs, self._final_obs, outcome, slot.action_mask)
        _copy(self._obs, slot.obs)
        slot.reward[:] = self._reward
        slot.valid[:] = True
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
        """Env index and seed."""
        return f"env {row} (seed {self._seeds[row]})"

    def save_state(self) -> dict[str, Any]:
        """All rows in one array; as whole numbers, because some of its bits would be NaN as others."""
        return {"rows": self.core.save().view(np.int64)}

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Go on from saved rows."""
        self.core.load(np.ascontiguousarray(state["rows"]).view(np.float64))

    def close(self) -> None:
        """End the threads."""
        self._core = None

    def _derive_seeds(self, step: int) -> list[int]:
        return [derived_seed(self._seed, env, Stream.ENV_SEED, step) for env in range(self.num_rows)]


def _factory(blueprint: Blueprint) -> GymnasiumFactory:
    """The one factory of all envs; only ids of Gymnasium have a native counterpart."""
    first = blueprint.factories[0]
    if not isinstance(first, GymnasiumFactory) or any(other is not first for other in blueprint.factories):
        raise NativeError("the core has environments by their Gymnasium id, not envs or factories of your own")
    return first


def _check_layout(core: "CoreEngine", obs: list[tuple[str, int]], action_size: int) -> None:
    if core.obs_parts != obs or core.action_size != action_size:
        raise NativeError(
            f"the installed gymnasium's env has observations {obs} and {action_size} actions, the core's"
            f" {core.obs_parts} and {core.action_size}"
        )


def _copy(parts: list[NDArray[np.float64]], target: ArrayTree) -> None:
    for part, (_, leaf) in zip(parts, tree_items(target), strict=True):
        leaf[...] = part.reshape(leaf.shape)
