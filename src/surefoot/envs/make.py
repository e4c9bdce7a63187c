"""From what a user has (an id, an env, a factory, a vector env) to a VecEnv."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from surefoot.core.config import EnvConfig
from surefoot.core.errors import EnvError
from surefoot.core.registry import nearest
from surefoot.envs.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.local import GymEnv, LocalVecEnv
from surefoot.envs.protocol import VecEnv

Factory = Callable[[], GymEnv]
EnvSource = str | GymEnv | Factory | VectorEnv[Any, Any, Any]


def fixed_rows(source: EnvSource) -> int | None:
    """How many rows a source has of its own: an env is one, a vector env as many as it has, others any number."""
    if isinstance(source, VectorEnv):
        return source.num_envs
    return 1 if isinstance(source, gym.Env) else None


def make_vec_env(source: EnvSource, config: EnvConfig, num_envs: int, seed: int) -> VecEnv:
    """The VecEnv for a source; ids are made with the config's arguments."""
    if isinstance(source, VectorEnv):
        return GymnasiumVectorEnv(source, seed, config.truncation_as_termination)
    if isinstance(source, gym.Env):
        existing = source
        factories: list[Factory] = [lambda: existing]
    else:
        factory = gymnasium_factory(config) if isinstance(source, str) else source
        factories = [factory] * num_envs
    return LocalVecEnv(factories, seed, config.truncation_as_termination)


def gymnasium_factory(config: EnvConfig) -> Factory:
    """Makes the configured Gymnasium env; refuses an unknown id at once, with the nearest known one."""
    if ":" not in config.id and config.id not in gym.registry:
        hint = nearest(config.id, gym.registry) or nearest(config.id.lower(), (known.lower() for known in gym.registry))
        raise EnvError(f"there is no environment '{config.id}'{hint} ('surefoot envs' lists them)")

    def make() -> GymEnv:
        # Surefoot checks shapes, flags and finiteness at its own border, every step and at less cost.
        limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
        try:
            return gym.make(config.id, disable_env_checker=True, **limit, **config.kwargs)
        except (gym.error.Error, ImportError, ModuleNotFoundError) as error:
            cause = str(error).replace("\n", " ")
            raise EnvError(f"environment '{config.id}' could not be made: {cause}") from error
        except TypeError as error:
            raise EnvError(f"environment '{config.id}' refuses env.kwargs {config.kwargs}: {error}") from error

    return make
