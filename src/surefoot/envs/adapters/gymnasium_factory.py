"""Creates Gymnasium envs from an id, in this process or in a worker; does not import the config, for fast workers."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from surefoot.envs.adapters.gymnasium_envs import GymEnv
from surefoot.errors import EnvError
from surefoot.machine.extras import install_hint
from surefoot.machine.opengl import import_mujoco

_log = logging.getLogger("surefoot")


def bare_id(env_id: str) -> str:
    """The id without its module if that is Gymnasium itself: both ids mean the same env."""
    return env_id.removeprefix("gymnasium:")


@dataclass(frozen=True)
class GymnasiumFactory:
    """Creates a Gymnasium env with the configured arguments; carries the spec of ids that a script registered."""

    env_id: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int | None
    spec: EnvSpec | None

    def __call__(self) -> GymEnv:
        env_id, kwargs = self.env_id, self.kwargs
        if self.spec is not None:
            gym.registry.setdefault(env_id, self.spec)
        # Surefoot itself checks shapes, flags and finiteness in every step, at a lower cost.
        limit = {} if self.max_episode_steps is None else {"max_episode_steps": self.max_episode_steps}
        try:
            with _quiet_mujoco(env_id):
                return gym.make(env_id, disable_env_checker=True, **limit, **kwargs)
        except (gym.error.Error, ImportError, ModuleNotFoundError) as error:
            cause = _remedy(str(error)) or str(error).replace("\n", " ")
            raise EnvError(f"environment '{env_id}' could not be created: {cause}") from error
        except TypeError as error:
            raise EnvError(f"environment '{env_id}' does not accept env.kwargs {kwargs}: {error}") from error


def _remedy(cause: str) -> str:
    """How to install what is missing; Gymnasium's own advice could bring other versions than those that are tested."""
    if "gymnasium[box2d]" in cause:
        return f"it requires Box2D; {install_hint('box2d')}"
    if "gymnasium[mujoco]" in cause:
        return "it requires MuJoCo, which Surefoot's own installation brings; install Surefoot again"
    return ""


@contextmanager
def _quiet_mujoco(env_id: str) -> Iterator[None]:
    """Send MuJoCo's warnings about a model to the log instead of stderr and MUJOCO_LOG.TXT."""
    spec = gym.registry.get(bare_id(env_id))
    if spec is None or not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        yield
        return
    import_mujoco()
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
    _log.debug("MuJoCo warning: %s", message)
