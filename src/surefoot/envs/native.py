"""Native environments: what the core knows, and Gymnasium's vector interface to it for any other library."""

from collections.abc import Mapping
from functools import cache
from os.path import expanduser  # pathlib would drop a leading "./", which keeps a file out of the assets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from surefoot.core.cores import available_cores
from surefoot.core.errors import ConfigError, NativeError
from surefoot.core.ram import free_addresses, free_ram, readable
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory, bare_id
from surefoot.envs.tasks.registration import register_envs
from surefoot.native import core

if TYPE_CHECKING:
    from surefoot.native import Engine

_STILL_NATIVE = frozenset(
    {"default_camera_config", "width", "height", "camera_id", "camera_name", "max_geom", "visual_options"}
)
"""Arguments of MuJoCo tasks that only change pictures, which nobody takes of native envs."""
_OWNERS = ("gymnasium.envs.", "surefoot.envs.")
"""Where the envs are from that the core has counterparts of; a registry may have others under the same ids."""
_FAMILIES = ("gymnasium.envs.classic_control", "gymnasium.envs.mujoco", "surefoot.envs.")
_NUMBERS = (int, float, np.number)
_NO_LIMIT, _LIMIT = -1, "max_episode_steps"
"""How Gymnasium writes that there is no time limit, and its argument for one."""


@cache
def native_ids() -> tuple[str, ...]:
    """Ids that the core can run."""
    return tuple(core().env_ids())


def may_be_native(env_id: str) -> bool:
    """Whether an id is of a family that the core knows; said without the core, which knows it exactly."""
    register_envs()
    spec = gym.registry.get(bare_id(env_id))
    return spec is not None and str(spec.entry_point).startswith(_FAMILIES)


def make(env_id: str, num_envs: int = 1, *, threads: int = 0, **kwargs: Any) -> "NativeVectorEnv":
    """A Gymnasium vector env, stepped by the core on `threads` threads (0: one a core); others as for gym.make."""
    return NativeVectorEnv(env_id, num_envs, threads, kwargs)


def open_engine(
    factory: GymnasiumFactory, num_envs: int, threads: int = 0, truncation_as_termination: bool = False
) -> "Engine":
    """The core's engine for the envs that a factory would make, or a NativeError that says why there is none."""
    register_envs()
    env_id = bare_id(factory.env_id)
    if env_id not in native_ids():
        raise NativeError(f"there is no native '{env_id}'")
    spec = gym.spec(env_id)
    if not str(spec.entry_point).startswith(_OWNERS) or spec.kwargs or spec.additional_wrappers:
        raise NativeError(f"'{env_id}' is registered as another env here than the one that the core knows")
    limit, options = _limit(factory, spec), _options(env_id, factory.kwargs)
    threads = min(threads or available_cores(), num_envs)
    try:
        _check_memory(env_id, options, num_envs)
        return core().Engine(env_id, options, num_envs, threads, limit, truncation_as_termination)
    except ValueError as error:
        raise NativeError(str(error)) from error
    except (RuntimeError, MemoryError) as error:
        raise NativeError(
            f"{num_envs} envs on {threads} threads could not be made ({error}); lower rollout.num_envs or"
            " rollout.workers"
        ) from error


def _check_memory(env_id: str, options: dict[str, Any], num_envs: int) -> None:
    """Refuse envs that do not fit, before they are made."""
    filled, reserved = (num_envs * each for each in core().footprint(env_id, options))
    for needed, free, what in ((filled, free_ram(), "memory"), (reserved, free_addresses(), "address space")):
        if needed > free:
            raise ConfigError(
                [
                    f"rollout.num_envs: {num_envs} envs of '{env_id}' take {readable(needed)} of {what}, but only"
                    f" {readable(free)} are free; lower rollout.num_envs"
                ]
            )


def _limit(factory: GymnasiumFactory, spec: EnvSpec) -> int:
    """Steps of an episode at most, 0 for no limit; among the env's arguments, Gymnasium takes a limit, too."""
    given, limit = factory.kwargs.get(_LIMIT), factory.max_episode_steps
    if _LIMIT in factory.kwargs and (limit is not None or not _is_limit(given)):
        raise NativeError(f"the argument '{_LIMIT}' is not one that Gymnasium takes here")
    limit = next((each for each in (limit, given, spec.max_episode_steps) if each is not None), _NO_LIMIT)
    return 0 if limit == _NO_LIMIT else int(limit)


def _is_limit(value: Any) -> bool:
    return value is None or (isinstance(value, int) and (value > 0 or value == _NO_LIMIT))


def _options(env_id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A constructor's arguments as the core takes them: flags, numbers, strings and lists of numbers."""
    if "assets" in kwargs:  # the core's own name for the folder of models
        raise NativeError(f"{env_id} has no argument 'assets'")
    options: dict[str, Any] = {}
    if str(gym.spec(env_id).entry_point).startswith("gymnasium.envs.mujoco"):
        options["assets"] = str(Path(gym.__file__).parent / "envs" / "mujoco" / "assets")
    for name, value in kwargs.items():
        if name in (*_STILL_NATIVE, _LIMIT) or (name == "render_mode" and value is None):
            continue
        if isinstance(value, bool):
            options[name] = value
        elif isinstance(value, np.floating):
            raise NativeError(
                f"the argument '{name}' is a numpy number, with which Gymnasium rounds otherwise than with a float"
            )
        elif name == "frame_skip" and isinstance(value, float):
            raise NativeError("the argument 'frame_skip' must be a whole number")
        elif isinstance(value, int | float):
            options[name] = float(value)
        elif isinstance(value, str):
            options[name] = expanduser(value) if name == "xml_file" else value
        elif isinstance(value, tuple | list | np.ndarray) and all(isinstance(one, _NUMBERS) for one in value):
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
        _require("num_envs", num_envs, 1)
        _require("threads", threads, 0)
        if limit not in (None, _NO_LIMIT):
            _require("max_episode_steps", limit, 1)
        arguments = {name: value for name, value in kwargs.items() if name != "max_episode_steps"}
        factory = GymnasiumFactory(env_id, arguments, limit, None)
        self._engine: Engine | None = open_engine(factory, num_envs, threads)
        one = factory()
        self.spec, self.num_envs = one.spec, num_envs
        self.metadata = {**one.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = one.observation_space, one.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        one.close()
        self._keys = [key for key, _ in self._engine.obs_parts]
        sizes = [size for _, size in self._engine.obs_parts]
        self._obs, self._final_obs = ([np.zeros((num_envs, size)) for size in sizes] for _ in range(2))
        mask_size = self._engine.mask_size
        self._mask = np.ones((num_envs, mask_size), dtype=bool) if mask_size else None
        self._is_seeded = False

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start all envs anew; env i is seeded with `seed + i` or `seed[i]`, or goes on with its own generator."""
        if options:
            raise NativeError(f"native envs take no options of a reset, such as {', '.join(map(repr, options))}")
        words = None
        if seed is not None or not self._is_seeded:
            words = np.array([seed_words(one) for one in self._seeds(seed)], dtype=np.uint64)
            self._is_seeded = True
        self._open().reset(words, self._obs, self._mask)
        return self._observation(self._obs), self._info()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all envs; those that end begin anew at once."""
        if not self._is_seeded:
            raise NativeError("reset the envs before the first step")
        outcome = {
            "reward": np.zeros(self.num_envs),
            "terminated": np.zeros(self.num_envs, dtype=bool),
            "truncated": np.zeros(self.num_envs, dtype=bool),
        }
        self._open().step(self._actions(actions), self._obs, self._final_obs, outcome, self._mask)
        info, ended = self._info(), outcome["terminated"] | outcome["truncated"]
        if ended.any():
            info |= {"final_obs": self._observation(self._final_obs), "_final_obs": ended}
        return self._observation(self._obs), *outcome.values(), info

    def save_state(self) -> NDArray[np.float64]:
        """All that is needed to go on from here bit for bit, `[num_envs, numbers]`."""
        return self._open().save()

    def load_state(self, state: NDArray[np.float64]) -> None:
        """Go on from a saved state."""
        self._open().load(np.ascontiguousarray(state, dtype=np.float64))
        self._is_seeded = True

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        self._engine = None

    def _open(self) -> "Engine":
        if self._engine is None:
            raise NativeError("the envs are closed; make new ones")
        return self._engine

    def _seeds(self, seed: Any) -> list[int]:
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        given = [seed + env for env in range(self.num_envs)] if isinstance(seed, int | np.integer) else list(seed)
        if len(given) != self.num_envs or not all(isinstance(one, int | np.integer) and one >= 0 for one in given):
            raise NativeError(f"seed must be a whole number of at least 0, or one for each of the {self.num_envs} envs")
        return [int(one) for one in given]

    def _actions(self, actions: Any) -> NDArray[Any]:
        given, space = np.asarray(actions), self.action_space
        is_box = isinstance(self.single_action_space, spaces.Box)
        with np.errstate(invalid="ignore"):  # NaN becomes some number, which is not what was given
            whole = given if is_box else given.astype(space.dtype)
        if given.shape != space.shape or (not is_box and not ((whole == given).all() and space.contains(whole))):
            raise NativeError(f"actions must be in {space}")
        chosen = np.ascontiguousarray(given, dtype=np.float32 if is_box else np.int64)
        return chosen.reshape(self.num_envs, -1)

    def _observation(self, parts: list[NDArray[np.float64]]) -> Any:
        """Copies in the spaces' own types and shapes."""
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {
                key: part.astype(space[key].dtype).reshape(space[key].shape)
                for key, part in zip(self._keys, parts, strict=True)
            }
        return parts[0].astype(space.dtype).reshape(space.shape)

    def _info(self) -> dict[str, Any]:
        return {} if self._mask is None else {"action_mask": self._mask.copy()}


def _require(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int | np.integer) or value < least:
        raise NativeError(f"{name} must be a whole number of at least {least}, not {value!r}")
