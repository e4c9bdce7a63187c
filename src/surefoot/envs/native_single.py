"""One native env that MuJoCo can draw, for envs of the core that have no Python twin with pictures."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.native_specs import core_declared, set_in_core
from surefoot.envs.native_task import NativeTask, open_engine, seed_words
from surefoot.envs.native_vector import core_spaces
from surefoot.envs.protocol.agent_parameters import Values, is_of_agent


class NativeEnv(gym.Env[Any, Any]):
    """With the seed of an env of the native engine, it plays that env's episodes."""

    def __init__(self, task: NativeTask) -> None:
        self._engine = open_engine(task, 1)
        self.num_agents = self._engine.num_agents
        self.observation_space, self.action_space = core_spaces(self._engine)
        self.model, self.seconds_per_step, pose = self._engine.scene(0)
        """MuJoCo's model as the contents of an MJB file, empty if MuJoCo does not simulate the env."""
        self._poses: NDArray[np.float64] = pose[None]
        self._obs, self._last = ([np.zeros((1, size)) for size in self._engine.obs_sizes] for _ in range(2))
        mask_size = self._engine.mask_size
        self._mask = np.ones((1, mask_size), dtype=bool) if mask_size else None
        self._is_over = False
        self.parameters: Values = core_declared(self._engine).parameters
        self.agent_parameters = [name for name, default in self.parameters.items() if is_of_agent(default)]

    def set_parameters(self, values: dict[str, Any]) -> None:
        """Set parameters by name."""
        set_in_core(self._engine, {name: np.asarray(value) for name, value in values.items()}, self.parameters)

    @property
    def pose(self) -> NDArray[np.float64]:
        """The state of the simulation after the last step or reset (`mjSTATE_INTEGRATION`)."""
        pose: NDArray[np.float64] = self._poses[0]
        return pose

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin another episode."""
        super().reset(seed=seed)
        if seed is not None or not self._is_over:  # the core has already reset an env that ended
            words = None if seed is None else np.array([seed_words(seed)], dtype=np.uint64)
            self._engine.reset(words, self._obs, self._mask)
        self._is_over = False
        self.model, _, pose = self._engine.scene(0)
        self._poses = pose[None]
        return self._observation(self._obs), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the env."""
        dtype = np.float32 if isinstance(self.action_space, spaces.Box) else np.int64
        reward = np.zeros(1)
        terminated, truncated = np.zeros((2, 1), dtype=bool)
        outcome = {"reward": reward, "terminated": terminated, "truncated": truncated, "poses": self._poses}
        actions = np.ascontiguousarray(action, dtype=dtype).reshape(1, -1)
        self._engine.step(actions, self._obs, self._last, outcome, self._mask)
        self._is_over = bool(terminated[0] or truncated[0])
        obs = self._observation(self._last if self._is_over else self._obs)
        return obs, float(reward[0]), bool(terminated[0]), bool(truncated[0]), self._info()

    def _observation(self, leaves: list[NDArray[np.float64]]) -> Any:
        """Copies in the shapes of the space."""
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {key: leaf.reshape(space[key].shape).copy() for key, leaf in zip(space, leaves, strict=True)}
        return leaves[0].reshape(space.shape).copy()

    def _info(self) -> dict[str, Any]:
        return {} if self._mask is None else {"action_mask": self._mask[0].copy()}
