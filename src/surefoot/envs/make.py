"""Creates a VecEnv from an id, an env, a factory, a list of factories or a vector env."""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from surefoot.envs.adapters.atari import RAW, AtariFactory, is_atari, register_games
from surefoot.envs.adapters.envpool import EnvPoolEnvs
from surefoot.envs.adapters.gymnasium_envs import GymEnv
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.adapters.pettingzoo_env import is_parallel_env
from surefoot.envs.adapters.pettingzoo_factory import pettingzoo_factory
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, engines
from surefoot.envs.given import is_object_name
from surefoot.envs.library import LibraryFactory, is_library, library_factory
from surefoot.envs.packages import package_hint, refuse_missing_module
from surefoot.envs.protocol import VecEnv
from surefoot.errors import ConfigError, InstructionsError, NativeError, UnknownEnvError
from surefoot.machine.ram import free_ram, readable
from surefoot.output.quoted import quoted
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.settings.registry import AUTO, search_current_folder

PETTINGZOO, ENVPOOL = "pettingzoo:", "envpool:"
"""Prefixes of ids; ids without a prefix belong to Gymnasium."""

_LEAST_BYTES, _LEAST_BYTES_IN_PYTHON = 64, 2048
"""What any env takes at least, and one that is a Python object."""

Factory = Callable[[], GymEnv]
EnvSource = str | GymEnv | Factory | Sequence[Factory] | VectorEnv[Any, Any, Any]


def fixed_envs(source: EnvSource) -> int | None:
    """The fixed number of envs of a source: 1 for an env, one per factory of a list, None for others."""
    if isinstance(source, VectorEnv):
        return source.num_envs
    if isinstance(source, list | tuple):
        return len(source)
    return 1 if _exists(source) else None


def is_instance(source: EnvSource | None) -> bool:
    """Whether a source is an env or a vector env, which cannot be created again."""
    return isinstance(source, VectorEnv) or _exists(source)


def check_source(source: Any) -> None:
    """Refuse what is not a source of envs."""
    if isinstance(source, list | tuple):
        wrong = next((one for one in source if isinstance(one, str) or not callable(one)), None)
        if wrong is None and source:
            return
        got = f"a list with {quoted(wrong)}" if source else "an empty list"
        raise ConfigError([f"env: a list must contain functions that each create one env, not {got}"])
    if not isinstance(source, str) and not is_instance(source) and not callable(source):
        known = "a preset, an id, an env, a function that creates one, a list of such functions, or a vector env"
        is_sb3 = type(source).__module__.startswith("stable_baselines3")
        remedy = "; pass the list of functions from which it was made" if is_sb3 else ""
        raise ConfigError([f"env: pass {known}, not {quoted(source)}{remedy}"])


def make_vec_env(
    source: EnvSource,
    config: EnvConfig,
    num_envs: int,
    seed: int,
    rollout: RolloutConfig | None = None,
    share: range | None = None,
) -> VecEnv:
    """The VecEnv for a source: the configured engine steps ids and factories, vector envs step themselves.

    `share` selects some of the envs; they are numbered and seeded as among all.
    """
    rollout, share = rollout or RolloutConfig(), share or range(num_envs)
    steps_itself = isinstance(source, VectorEnv) or (isinstance(source, str) and source.startswith(ENVPOOL))
    if rollout.engine.kind not in (AUTO, "local") and (steps_itself or _exists(source)):
        what = "a vector env or a pool steps itself" if steps_itself else "an env instance cannot move to a worker"
        raise ConfigError([f"rollout.engine: must be 'auto' or 'local', because {what} (got '{rollout.engine.kind}')"])
    if len(share) < num_envs and (steps_itself or _exists(source)):
        raise ConfigError(
            ["env.id: an env instance, a vector env or a pool cannot be divided among processes; start one process"]
        )
    if isinstance(source, VectorEnv):
        return GymnasiumVectorEnv(source, seed, config.truncation_as_termination, config.metrics)
    if isinstance(source, str) and steps_itself:
        return EnvPoolEnvs(source.removeprefix(ENVPOOL), config, num_envs, seed)
    check_number(len(share), _LEAST_BYTES)
    blueprint = Blueprint(
        _factories(source, config, share), seed, config.truncation_as_termination, config.metrics, share.start
    )
    return build_engine(blueprint, rollout)


def _factories(source: Any, config: EnvConfig, share: range) -> list[Factory]:
    if _exists(source):
        return [lambda: source]
    if not isinstance(source, list | tuple):
        return [env_factory(source, config)] * len(share)
    if len(source) < share.stop:
        raise ConfigError(
            [f"rollout.num_envs: {share.stop} envs, but {len(source)} factories were passed; leave the setting out"]
        )
    return list(source[share.start : share.stop])


def check_number(num_envs: int, bytes_each: int) -> None:
    """Refuse more envs than can fit into memory, before the first one is created."""
    needed, free = num_envs * bytes_each, free_ram()
    if needed > free:
        raise ConfigError(
            [
                f"rollout.num_envs: {num_envs} envs take at least {readable(needed)} of memory, but only"
                f" {readable(free)} are free; lower rollout.num_envs"
            ]
        )


def build_engine(blueprint: Blueprint, rollout: RolloutConfig) -> Engine:
    """The configured engine; envs without a native implementation use the local engine, with the reason."""
    if rollout.engine.kind not in (AUTO, "native"):
        engine_class = engines[rollout.engine.kind]
        if engine_class.steps_here:
            check_number(blueprint.num_envs, _LEAST_BYTES_IN_PYTHON)
        return engine_class(blueprint, rollout)
    try:
        return engines["native"](blueprint, rollout)
    except NativeError as error:
        if isinstance(error, InstructionsError) or isinstance(blueprint.factories[0], LibraryFactory):
            raise  # asked for by name; of somebody's C++, its Python twin, if any, is not what was asked for
        reason = str(error)
    # Outside the except block: inside, Python raises KeyError instead of TypeError for a duplicate argument.
    check_number(blueprint.num_envs, _LEAST_BYTES_IN_PYTHON)
    engine = engines["local"](blueprint, rollout)
    engine.why_not_native = reason
    return engine


def _exists(source: Any) -> bool:
    return isinstance(source, gym.Env) or (is_parallel_env(source) and not isinstance(source, type))


def env_factory(source: Any, config: EnvConfig) -> Factory:
    """What makes one env of a source: an id of any kind, or a factory itself."""
    if not isinstance(source, str):
        return source  # type: ignore[no-any-return]
    if is_library(source):
        return library_factory(source, config.kwargs, config.max_episode_steps)
    if ":" in source:
        search_current_folder()
    if is_atari(source) and RAW not in config.kwargs:
        _known_id(register_games(source), source)
        return AtariFactory(source, config.kwargs, config.max_episode_steps)
    if source.startswith(PETTINGZOO):
        return pettingzoo_factory(source.removeprefix(PETTINGZOO), config)
    return gymnasium_factory(source, config)


def gymnasium_factory(env_id: str, config: EnvConfig) -> GymnasiumFactory:
    """A factory for an id; an unknown id is rejected with the package that has it, or the nearest known one."""
    if is_atari(env_id):
        env_id = register_games(env_id)
    refuse_missing_module(env_id)
    if ":" not in env_id:
        _known_id(env_id, env_id)
    return GymnasiumFactory(env_id, config.kwargs, config.max_episode_steps, gym.registry.get(env_id))


def _known_id(env_id: str, asked: str) -> None:
    if is_object_name(asked):
        raise UnknownEnvError(
            f"the environment {asked} is an object with wrappers or arguments that no file contains; create it in"
            " Python and pass it"
        )
    if env_id not in gym.registry:
        hint = package_hint(env_id) or f"{_suggestion(env_id)} ('surefoot envs' lists the known ones)"
        raise UnknownEnvError(f"unknown environment '{asked}'{hint}")


def _suggestion(env_id: str) -> str:
    """A "did you mean" clause with the nearest known id, ignoring case."""
    known = {name.lower(): name for name in gym.registry}
    close = difflib.get_close_matches(env_id.lower(), known, n=1)
    return f"; did you mean '{known[close[0]]}'?" if close else ""
