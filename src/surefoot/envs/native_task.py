"""From what would make an env to what the core makes instead: an id with options and a time limit."""

from collections.abc import Mapping
from dataclasses import dataclass
from os.path import expanduser  # pathlib would drop a leading "./", which keeps a file out of the assets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec, load_env_creator

from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory, bare_id
from surefoot.envs.adapters.pettingzoo_factory import PettingZooFactory
from surefoot.envs.library import LibraryFactory
from surefoot.errors import ConfigError, NativeError
from surefoot.machine.cores import available_cores
from surefoot.machine.ram import free_addresses, free_ram, readable
from surefoot.native import core

if TYPE_CHECKING:
    from surefoot.native import Engine

PETTINGZOO = "pettingzoo:"
"""How the ids of envs with several agents begin."""
_STILL_NATIVE = frozenset(
    {"default_camera_config", "width", "height", "camera_id", "camera_name", "max_geom", "visual_options"}
)
"""Arguments of MuJoCo tasks that only change pictures, which nobody takes of native envs."""
_OWN = "surefoot.envs."
_OWNERS = ("gymnasium.envs.", _OWN)
"""Where the envs are from that the core has counterparts of; a registry may have others under the same ids."""
_NUMBERS = (int, float, np.number)
NO_LIMIT, _LIMIT = -1, "max_episode_steps"
"""How Gymnasium writes that there is no time limit, and its argument for one."""


@dataclass(frozen=True)
class NativeTask:
    """Which env the core makes, and how."""

    env_id: str
    options: Mapping[str, Any]
    max_episode_steps: int
    """0: no limit."""
    library: str = ""
    """Path of the library that has it; empty for the core's own envs."""


def native_task(factory: object) -> NativeTask:
    """The task of the envs that a factory would make, or a NativeError that says why there is none."""
    if isinstance(factory, GymnasiumFactory):
        return _gymnasium_task(factory)
    if isinstance(factory, PettingZooFactory):
        return _pettingzoo_task(factory)
    if isinstance(factory, LibraryFactory):
        options = _options(factory.name, factory.kwargs) | {"assets": str(Path(factory.path).parent)}
        return NativeTask(factory.name, options, factory.max_episode_steps, factory.path)
    raise NativeError("the core needs the id of an environment, not an env object or a factory")


def open_engine(task: NativeTask, num_envs: int, threads: int = 0, truncation_as_termination: bool = False) -> "Engine":
    """The core's engine for so many envs, or a NativeError that says why they cannot be made."""
    threads = min(threads or available_cores(), num_envs)
    try:
        _check_memory(task, num_envs)
        return core().Engine(
            task.env_id,
            task.options,
            num_envs,
            threads,
            task.max_episode_steps,
            truncation_as_termination,
            task.library,
        )
    except ValueError as error:
        raise NativeError(" ".join(str(error).split())) from error  # MuJoCo's messages have several lines
    except (LookupError, ArithmeticError) as error:  # what the env's own code threw
        raise NativeError(f"'{task.env_id}' could not be created: {error}") from error
    except (RuntimeError, MemoryError) as error:
        raise NativeError(
            f"{num_envs} envs on {threads} threads could not be created ({error}); lower rollout.num_envs or"
            " rollout.workers"
        ) from error


def _check_memory(task: NativeTask, num_envs: int) -> None:
    """Refuse envs that do not fit, before they are made."""
    filled, reserved = (num_envs * each for each in core().footprint(task.env_id, task.options, task.library))
    for needed, free, what in ((filled, free_ram(), "memory"), (reserved, free_addresses(), "address space")):
        if needed > free:
            raise ConfigError(
                [
                    f"rollout.num_envs: {num_envs} envs of '{task.env_id}' take {readable(needed)} of {what}, but only"
                    f" {readable(free)} are free; lower rollout.num_envs"
                ]
            )


def _gymnasium_task(factory: GymnasiumFactory) -> NativeTask:
    env_id = bare_id(factory.env_id)
    if env_id not in core().env_ids() or env_id.startswith(PETTINGZOO):
        raise NativeError(f"'{env_id}' has no native implementation")
    spec = gym.spec(env_id)
    if not str(spec.entry_point).startswith(_OWNERS) or spec.kwargs or spec.additional_wrappers:
        raise NativeError(f"'{env_id}' is registered for a different env than the one in the core")
    options = _options(env_id, _core_arguments(spec, factory.kwargs))
    if str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        options["assets"] = str(Path(gym.__file__).parent / "envs" / "mujoco" / "assets")
    return NativeTask(env_id, options, _limit(factory, spec))


def _core_arguments(spec: EnvSpec, kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments as the core takes them, by the twin's `core_arguments`, if it has one: the core opens no files."""
    if not isinstance(spec.entry_point, str) or not spec.entry_point.startswith(_OWN):
        return kwargs
    translate = getattr(load_env_creator(spec.entry_point), "core_arguments", None)
    if translate is None:
        return kwargs
    try:
        return translate({name: value for name, value in kwargs.items() if name != _LIMIT})  # type: ignore[no-any-return]
    except (gym.error.Error, TypeError) as error:
        raise NativeError(" ".join(str(error).split())) from error


def _pettingzoo_task(factory: PettingZooFactory) -> NativeTask:
    env_id, config = f"{PETTINGZOO}{factory.module}", factory.config
    limits = dict(core().library_envs(""))
    if env_id not in limits:
        raise NativeError(f"'{env_id}' has no native implementation")
    if "max_cycles" in config.kwargs:
        raise NativeError("the core does not take the argument 'max_cycles'; set env.max_episode_steps")
    return NativeTask(env_id, _options(env_id, config.kwargs), config.max_episode_steps or limits[env_id])


def _limit(factory: GymnasiumFactory, spec: EnvSpec) -> int:
    """Steps of an episode at most, 0 for no limit; among the env's arguments, Gymnasium takes a limit, too."""
    given, limit = factory.kwargs.get(_LIMIT), factory.max_episode_steps
    if _LIMIT in factory.kwargs and (limit is not None or not _is_limit(given)):
        raise NativeError(f"Gymnasium does not take the argument '{_LIMIT}' here")
    limit = next((each for each in (limit, given, spec.max_episode_steps) if each is not None), NO_LIMIT)
    return 0 if limit == NO_LIMIT else int(limit)


def _is_limit(value: Any) -> bool:
    return value is None or (isinstance(value, int) and (value > 0 or value == NO_LIMIT))


def _options(env_id: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """A constructor's arguments as the core takes them: flags, numbers, strings and lists of numbers."""
    if "assets" in kwargs:  # the core's own name for the folder of models
        raise NativeError(f"{env_id} has no argument 'assets'")
    options: dict[str, Any] = {}
    for name, value in kwargs.items():
        if name in (*_STILL_NATIVE, _LIMIT) or (name == "render_mode" and value is None):
            continue
        if isinstance(value, bool):
            options[name] = value
        elif isinstance(value, np.floating):
            raise NativeError(
                f"the argument '{name}' is a numpy number, with which Gymnasium rounds differently than with a float"
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
            raise NativeError(f"the argument '{name}' has a type that the core does not support")
    return options


def seed_words(seed: int) -> list[int]:
    """The state of the generator that Gymnasium seeds with this number, in four 64-bit words."""
    state = np.random.PCG64(seed).state["state"]
    low = (1 << 64) - 1
    return [word for number in (state["state"], state["inc"]) for word in (number >> 64, number & low)]
