"""From what a user has (an id, an env, a factory, a vector env) to a VecEnv."""

import difflib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from surefoot.core.config import EnvConfig, RolloutConfig
from surefoot.core.errors import ConfigError, EnvError
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import engines
from surefoot.envs.gymnasium_envs import GymEnv, GymnasiumEnvs
from surefoot.envs.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.protocol import VecEnv

_log = logging.getLogger("surefoot")

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
        return GymnasiumEnvs([Existing(source)], seed, config.truncation_as_termination)
    factory = gymnasium_factory(source, config) if isinstance(source, str) else source
    return kind(Blueprint(factory, num_envs, seed, config.truncation_as_termination), rollout)


@dataclass(frozen=True)
class Existing:
    """A factory of an env that is there already."""

    env: GymEnv

    def __call__(self) -> GymEnv:
        return self.env


@dataclass(frozen=True)
class GymnasiumFactory:
    """Makes a Gymnasium env with the config's arguments; knows the spec of ids that a script registered itself."""

    env_id: str
    config: EnvConfig
    spec: EnvSpec | None

    def __call__(self) -> GymEnv:
        env_id, config = self.env_id, self.config
        if self.spec is not None:
            gym.registry.setdefault(env_id, self.spec)
        # Surefoot checks shapes, flags and finiteness at its own border, every step and at less cost.
        limit = {} if config.max_episode_steps is None else {"max_episode_steps": config.max_episode_steps}
        try:
            with _quiet_mujoco(env_id):
                return gym.make(env_id, disable_env_checker=True, **limit, **config.kwargs)
        except (gym.error.Error, ImportError, ModuleNotFoundError) as error:
            cause = str(error).replace("\n", " ")
            raise EnvError(f"environment '{env_id}' could not be made: {cause}") from error
        except TypeError as error:
            raise EnvError(f"environment '{env_id}' refuses env.kwargs {config.kwargs}: {error}") from error


def gymnasium_factory(env_id: str, config: EnvConfig) -> GymnasiumFactory:
    """A factory for an id; refuses an unknown one at once, with the nearest known one."""
    if ":" not in env_id and env_id not in gym.registry:
        raise EnvError(f"there is no environment '{env_id}'{_suggestion(env_id)} ('surefoot envs' lists them)")
    return GymnasiumFactory(env_id, config, gym.registry.get(env_id))


def _suggestion(env_id: str) -> str:
    """A "did you mean" clause with the nearest known id, in whatever case it was asked for."""
    known = {name.lower(): name for name in gym.registry}
    close = difflib.get_close_matches(env_id.lower(), known, n=1)
    return f"; did you mean '{known[close[0]]}'?" if close else ""


@contextmanager
def _quiet_mujoco(env_id: str) -> Iterator[None]:
    """What MuJoCo warns of while it compiles a model goes to the log; it would print it and write MUJOCO_LOG.TXT."""
    spec = gym.registry.get(env_id)
    if spec is None or not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    import mujoco

    messages: list[str] = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(previous)
        for message in messages:
            _log_once(message)


@cache
def _log_once(message: str) -> None:
    _log.debug("MuJoCo warns: %s", message)
