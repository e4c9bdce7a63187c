"""Makes Gymnasium envs from an id, in this process or in a worker; without the config, so that workers start lean."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from surefoot.core.errors import EnvError
from surefoot.envs.adapters.gymnasium_envs import GymEnv

_log = logging.getLogger("surefoot")


def bare_id(env_id: str) -> str:
    """Without the module's name where that is Gymnasium's own: the ids mean the same envs."""
    return env_id.removeprefix("gymnasium:")


@dataclass(frozen=True)
class GymnasiumFactory:
    """Makes a Gymnasium env with the config's arguments; knows the spec of ids that a script registered itself."""

    env_id: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int | None
    spec: EnvSpec | None

    def __call__(self) -> GymEnv:
        env_id, kwargs = self.env_id, self.kwargs
        if self.spec is not None:
            gym.registry.setdefault(env_id, self.spec)
        # Surefoot checks shapes, flags and finiteness at its own border, every step and at less cost.
        limit = {} if self.max_episode_steps is None else {"max_episode_steps": self.max_episode_steps}
        try:
            with _quiet_mujoco(env_id):
                return gym.make(env_id, disable_env_checker=True, **limit, **kwargs)
        except (gym.error.Error, ImportError, ModuleNotFoundError) as error:
            cause = str(error).replace("\n", " ")
            raise EnvError(f"environment '{env_id}' could not be made: {cause}") from error
        except TypeError as error:
            raise EnvError(f"environment '{env_id}' refuses env.kwargs {kwargs}: {error}") from error


@contextmanager
def _quiet_mujoco(env_id: str) -> Iterator[None]:
    """What MuJoCo warns of while it compiles a model goes to the log; it would print it and write MUJOCO_LOG.TXT."""
    spec = gym.registry.get(bare_id(env_id))
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
