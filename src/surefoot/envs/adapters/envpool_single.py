"""One env of EnvPool that is drawn; in training a pool steps all of its envs at once."""

from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from surefoot.envs.adapters.envpool import EnvPoolVector
from surefoot.settings.config import EnvConfig


class Context(Protocol):
    """An OpenGL context."""

    def make_current(self) -> None:
        """Draw with it from here on."""

    def free(self) -> None:
        """Release it."""


class EnvPoolEnv(gym.Env[Any, Any]):
    """A pool of one env. With the seed of a row of `EnvPoolEnvs`, it plays the episodes of that row.

    MuJoCo's tasks need an OpenGL context: EnvPool ends the process that draws them without one.
    """

    def __init__(self, task: str, config: EnvConfig, context: Context | None = None) -> None:
        drawn = config.model_copy(update={"kwargs": {**config.kwargs, "render_mode": "rgb_array"}})
        self._pool, self._is_over, self.render_mode = EnvPoolVector(task, drawn, 1), False, "rgb_array"
        self._context = context
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": self._pool.steps_per_second or 30}
        self.observation_space = self._pool.single_observation_space
        self.action_space = self._pool.single_action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin another episode; with a seed, in a new pool."""
        super().reset(seed=seed)
        if self._is_over and seed is None:  # as in a pool: the step after the end is the reset, and ignores the action
            obs, *_, infos = self._pool.step(self._batch(self.action_space.sample()))
        else:
            obs, infos = self._pool.reset(seed=None if seed is None else [seed])
        self._is_over = False
        return _first(obs), _first(infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the env."""
        obs, reward, terminated, truncated, infos = self._pool.step(self._batch(action))
        self._is_over = bool(terminated[0] or truncated[0])
        return _first(obs), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(infos)

    def render(self) -> Any:
        """A picture."""
        if self._context is not None:
            self._context.make_current()
        return self._pool.render()[0]

    def close(self) -> None:
        """End the pool's threads."""
        self._pool.close()
        if self._context is not None:
            self._context.free()

    def _batch(self, action: Any) -> np.ndarray:
        return np.asarray(action, dtype=self.action_space.dtype)[None]


def _first(batch: Any) -> Any:
    """The only row."""
    if isinstance(batch, dict):
        return {name: _first(part) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_first(part) for part in batch)
    return batch[0] if np.ndim(batch) else batch
