"""EnvPool: many envs stepped by its threads; resets take a step after the end (NEXT_STEP, S4, docs/semantics.md)."""

import difflib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.errors import EnvError
from surefoot.machine.cores import available_cores
from surefoot.machine.extras import install_hint
from surefoot.output.failures import let_interrupts_through
from surefoot.settings.config import EnvConfig

_OURS = ("num_envs", "batch_size", "seed", "env_seed", "env_type", "gym_reset_return_info")
"""Arguments of `envpool.make` that Surefoot sets."""


class EnvPoolEnvs(GymnasiumVectorEnv):
    """Every env of a task is a row; row i is seeded from (seed, i), regardless of the number of envs and threads."""

    def __init__(self, task: str, config: EnvConfig, num_envs: int, seed: int) -> None:
        super().__init__(EnvPoolVector(task, config, num_envs), seed, config.truncation_as_termination, config.metrics)

    def _has_seed_each(self) -> bool:
        return True


class EnvPoolVector(VectorEnv[Any, Any, Any]):
    """A pool as a vector env that is seeded in `reset`."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    _pool: Any = None

    def __init__(self, task: str, config: EnvConfig, num_envs: int) -> None:
        self._task, self.num_envs = task, num_envs
        threads = min(num_envs, available_cores())
        limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
        self._kwargs = {"num_threads": threads} | config.kwargs | limit | {"num_envs": num_envs}
        _refuse_ours(config)
        if config.kwargs.get("from_pixels") and is_mujoco(task):
            raise EnvError(
                "env.kwargs: from_pixels makes EnvPool draw in threads that have no OpenGL context, which ends the"
                " process; remove it, or observe pixels of a Gymnasium task"
            )
        with _typed_errors(task, config):
            spec = _envpool(task).make_spec(task, **self._kwargs)
            self.single_observation_space = spec.gymnasium_observation_space
            self.single_action_space = spec.gymnasium_action_space
        if spec.config.max_num_players > 1:
            raise EnvError(f"EnvPool's '{task}' has {spec.config.max_num_players} players; choose a single-player task")
        self._config = config
        control_period = getattr(spec.config, "ctrl_dt", None)
        self.steps_per_second = None if control_period is None else 1 / control_period
        """Where the task says it: MuJoCo Playground's do."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Create new envs: EnvPool seeds an env only when it is created."""
        self.close()
        with _typed_errors(self._task, self._config):
            self._pool = _envpool(self._task).make(self._task, env_type="gymnasium", env_seed=seed, **self._kwargs)
            obs, infos = self._pool.reset()
        return obs, self._with_masks(obs, infos)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every env; an env that ended in the previous step is reset instead."""
        obs, reward, terminated, truncated, infos = self._pool.step(actions)
        return obs, reward, terminated, truncated, self._with_masks(obs, infos)

    def render(self) -> Any:
        """Pictures of all envs, if the pool was made with a render mode."""
        return self._pool.render()

    def close(self, **kwargs: Any) -> None:
        """Release the pool: its threads end when it is deleted, not in its `close`."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _with_masks(self, obs: Any, infos: dict[str, Any]) -> dict[str, Any]:
        """Move the action masks of tasks that include them in the observation to the infos."""
        space = self.single_action_space
        if isinstance(obs, dict) and "action_mask" in obs and isinstance(space, spaces.Discrete):
            mask = obs["action_mask"].reshape(self.num_envs, -1)
            if mask.shape[1] == space.n:
                return infos | {"action_mask": mask}
        return infos


def _envpool(task: str) -> ModuleType:
    """The package, if it is installed and has the task."""
    try:
        import envpool
    except ImportError as error:
        raise EnvError(f"environment 'envpool:{task}' requires EnvPool; {install_hint('envpool')}") from error
    known = {name.lower(): name for name in envpool.list_all_envs()}
    if task not in known.values():
        close = difflib.get_close_matches(task.lower(), known, n=1)
        suggestion = f"; did you mean 'envpool:{known[close[0]]}'?" if close else ""
        raise EnvError(f"EnvPool has no task '{task}'{suggestion} (envpool.list_all_envs() lists them)")
    module: ModuleType = envpool
    return module


def is_mujoco(task: str) -> bool:
    """Whether MuJoCo simulates a task of EnvPool."""
    _envpool(task)
    from envpool.registration import registry

    return str(registry.specs[task][0]).startswith("envpool.mujoco")


def _refuse_ours(config: EnvConfig) -> None:
    taken = [name for name in _OURS if name in config.kwargs]
    if taken:
        raise EnvError(f"env.kwargs: Surefoot itself sets EnvPool's {', '.join(taken)}; remove it from env.kwargs")


@contextmanager
def _typed_errors(task: str, config: EnvConfig) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            # EnvPool passes double-precision bounds to single-precision spaces.
            warnings.filterwarnings("ignore", message=".*precision lowered", category=UserWarning)
            yield
    except EnvError:
        raise
    except TypeError as error:
        cause = str(error).partition("\n")[0]  # the others list types of the constructor in C++
        raise EnvError(f"environment 'envpool:{task}' does not accept env.kwargs {config.kwargs}: {cause}") from error
    except BaseException as error:
        let_interrupts_through(error)
        cause = str(error).replace("\n", " ")
        raise EnvError(f"environment 'envpool:{task}' could not be created: {cause}") from error


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
