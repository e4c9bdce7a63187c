"""From what a user has (an id, an env, a factory, a vector env) to a VecEnv."""

import difflib
from collections.abc import Callable
from typing import Any

import gymnasium as gym
from gymnasium.vector import VectorEnv

from surefoot.core.config import EnvConfig, RolloutConfig
from surefoot.core.errors import ConfigError, EnvError
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import engines
from surefoot.envs.gymnasium_envs import GymEnv, GymnasiumEnvs
from surefoot.envs.gymnasium_factory import GymnasiumFactory
from surefoot.envs.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.protocol import VecEnv

Factory = Callable[[], GymEnv]
EnvSource = str | GymEnv | Factory | VectorEnv[Any, Any, Any]


def fixed_rows(source: EnvSource) -> int | None:
    """How many rows a source has of its own: an env is one, a vector env as many as it has, others any number."""
    if isinstance(source, VectorEnv):
        return source.num_envs
    return 1 if isinstance(source, gym.Env) else None


def make_vec_env(
    source: EnvSource, config: EnvConfig, num_envs: int, seed: int, rollout: RolloutConfig | None = None
) -> VecEnv:
    """The VecEnv for a source: ids and factories are stepped by the configured engine, vector envs step themselves."""
    rollout = rollout or RolloutConfig()
    kind = engines[rollout.engine]
    if isinstance(source, VectorEnv | gym.Env):
        if rollout.engine != "local":
            raise ConfigError(
                [f"rollout.engine: '{rollout.engine}' needs an id or a factory, not an env that exists already"]
            )
        if isinstance(source, VectorEnv):
            return GymnasiumVectorEnv(source, seed, config.truncation_as_termination)
        return GymnasiumEnvs([lambda: source], seed, config.truncation_as_termination)
    factory = gymnasium_factory(source, config) if isinstance(source, str) else source
    return kind(Blueprint([factory] * num_envs, seed, config.truncation_as_termination), rollout)


def gymnasium_factory(env_id: str, config: EnvConfig) -> GymnasiumFactory:
    """A factory for an id; refuses an unknown one at once, with the nearest known one."""
    if ":" not in env_id and env_id not in gym.registry:
        raise EnvError(f"there is no environment '{env_id}'{_suggestion(env_id)} ('surefoot envs' lists them)")
    return GymnasiumFactory(env_id, config.kwargs, config.max_episode_steps, gym.registry.get(env_id))


def _suggestion(env_id: str) -> str:
    """A "did you mean" clause with the nearest known id, in whatever case it was asked for."""
    known = {name.lower(): name for name in gym.registry}
    close = difflib.get_close_matches(env_id.lower(), known, n=1)
    return f"; did you mean '{known[close[0]]}'?" if close else ""
