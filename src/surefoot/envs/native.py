"""Native environments: what the core knows, and Gymnasium's vector interface to it for any other library."""

from collections.abc import Mapping
from functools import cache
from os.path import expanduser  # pathlib would drop a leading "./", which keeps a file out of the assets
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from surefoot.core.cores import available_cores
from surefoot.core.errors import NativeError
from surefoot.envs.gymnasium_factory import GymnasiumFactory
from surefoot.envs.registration import register_envs
from surefoot.native import core

_STILL_NATIVE = frozenset(
    {"default_camera_config", "width", "height", "camera_id", "camera_name", "max_geom", "visual_options"}
)
"""Arguments of MuJoCo tasks that only change pictures, which nobody takes of native envs."""


@cache
def native_ids() -> tuple[str, ...]:
    """Ids that the core can run."""
    return tuple(core().env_ids())


def make(env_id: str, num_envs: int = 1, *, threads: int = 0, **kwargs: Any) -> "NativeVectorEnv":
    """A Gymnasium vector env, stepped by the core on `threads` threads (0: one a core); others as for gym.make."""
    return NativeVectorEnv(env_id, num_envs, threads, kwargs)


def open_engine(
    factory: GymnasiumFactory, num_envs: int, threads: int = 0, truncation_as_termination: bool = False
) -> Any:
    """The core's engine for the envs that a factory would make, or a NativeError that says why there is none."""
    register_envs()
    if factory.env_id not in native_ids():
        raise NativeError(f"there is no native '{factory.env_id}'")
    limit = factory.max_episode_steps or gym.spec(factory.env_id).max_episode_steps or 0
    try:
        options = _options(factory.env_id, factory.kwargs)
        return core().Engine(
            factory.env_id, options, num_envs, threads or available_cores(), limit, truncation_as_termination
        )
    except (ValueError, TypeError) as error:
        raise NativeError(str(error)) from error


def _options(env_id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A constructor's arguments as the core takes them: flags, numbers, strings and lists of numbers."""
    if "assets" in kwargs:  # the core's own name for the folder of models
        raise NativeError(f"{env_id} has no argument 'assets'")
    options: dict[str, Any] = {}
    if str(gym.spec(env_id).entry_point).startswith("gymnasium.envs.mujoco"):
        options["assets"] = str(Path(gym.__file__).parent / "envs" / "mujoco" / "assets")
    for name, value in kwargs.items():
        if name in _STILL_NATIVE or (name == "render_mode" and value is None):
            continue
        if isinstance(value, bool):
            options[name] = value
        elif isinstance(value, np.floating):
            raise NativeError(
                f"the argument '{name}' is a numpy number, with which Gymnasium rounds otherwise than with a float"
            )
        elif isinstance(value, int | float):
            options[name] = float(value)
        elif isinstance(value, str):
            options[name] = expanduser(value) if name == "xml_file" else value
        elif isinstance(value, tuple | list | np.ndarray):
            options[name] = [float(number) for number in value]
        else:
            raise NativeError(f"the argument '{name}' is of a kind that the core does not take")
    return options


def seed_words(seed: int) -> list[int]:
    """The state of the generator that Gymnasium seeds with this number, in four 64-bit words."""
    state = np.random.PCG64(seed).state["state"]
    low = (1 << 64) - 1
    return [word for number in (state["state"], state["inc"]) for word in (number >> 64, number & low)]


class NativeVectorEnv(VectorEnv[Any, Any, Any]):
    """Resets in the same step; the last observation of an episode is `infos["final_obs"]`."""

    def __init__(self, env_id: str, num_envs: int, threads: int, kwargs: Mapping[str, Any]) -> None:
        limit = kwargs.get("max_episode_steps")
        arguments = {name: value for name, value in kwargs.items() if name != "max_episode_steps"}
        factory = GymnasiumFactory(env_id, arguments, limit, None)
        self._engine = open_engine(factory, num_envs, threads)
        one = factory()
        self.spec, self.num_envs = one.spec, num_envs
        self.metadata = {**one.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = one.observation_space, one.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        one.close()
        self._obs, self._final_obs = self._new_obs(), self._new_obs()
        mask_size = self._engine.mask_size
        self._mask = np.ones((num_envs, mask_size), dtype=bool) if mask_size else None

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start all envs anew; env i is seeded with `seed + i`, or with `seed[i]`."""
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        seeds = [seed + env for env in range(self.num_envs)] if isinstance(seed, int) else list(seed)
        if len(seeds) != self.num_envs:
            raise NativeError(f"seed must have one entry for each of the {self.num_envs} envs, not {len(seeds)}")
        words = np.array([seed_words(int(one)) for one in seeds], dtype=np.uint64)
        self._engine.reset(words, self._obs, self._mask)
        return self._observation(self._obs), self._info()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs; those that end begin anew at once."""
        outcome = {
            "reward": np.zeros(self.num_envs),
            "terminated": np.zeros(self.num_envs, dtype=bool),
            "truncated": np.zeros(self.num_envs, dtype=bool),
        }
        self._engine.step(self._actions(actions), self._obs, self._final_obs, outcome, self._mask)
        info, ended = self._info(), outcome["terminated"] | outcome["truncated"]
        if ended.any():
            info |= {"final_obs": self._observation(self._final_obs), "_final_obs": ended}
        return self._observation(self._obs), *outcome.values(), info

    def save_state(self) -> NDArray[np.float64]:
        """All that is needed to go on from here bit for bit, `[num_envs, numbers]`."""
        state: NDArray[np.float64] = self._engine.save()
        return state

    def load_state(self, state: NDArray[np.float64]) -> None:
        """Go on from a saved state."""
        self._engine.load(np.ascontiguousarray(state, dtype=np.float64))

    def _new_obs(self) -> list[NDArray[np.float64]]:
        return [np.zeros((self.num_envs, size)) for _, size in self._engine.obs_parts]

    def _actions(self, actions: Any) -> NDArray[Any]:
        if isinstance(self.single_action_space, spaces.Box):
            return np.ascontiguousarray(actions, dtype=np.float32).reshape(self.num_envs, -1)
        chosen = np.ascontiguousarray(actions, dtype=np.int64)
        if not self.action_space.contains(chosen.astype(self.action_space.dtype)):
            raise NativeError(f"actions must be in {self.action_space}")
        return chosen.reshape(self.num_envs, -1)

    def _observation(self, parts: list[NDArray[np.float64]]) -> Any:
        """Copies in the spaces' own types and shapes."""
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            keys = [key for key, _ in self._engine.obs_parts]
            return {
                key: part.astype(space[key].dtype).reshape(space[key].shape)
                for key, part in zip(keys, parts, strict=True)
            }
        return parts[0].astype(space.dtype).reshape(space.shape)

    def _info(self) -> dict[str, Any]:
        return {} if self._mask is None else {"action_mask": self._mask.copy()}
