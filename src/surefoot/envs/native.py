"""Native environments: what the core knows, and `make`."""

from functools import cache
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode

from surefoot.envs.adapters.gymnasium_factory import bare_id
from surefoot.envs.native_task import PETTINGZOO
from surefoot.envs.native_vector import NativeVectorEnv
from surefoot.native import core

_FAMILIES = ("gymnasium.envs.classic_control", "gymnasium.envs.mujoco", "surefoot.envs.")


@cache
def native_ids() -> tuple[str, ...]:
    """Ids of Gymnasium that the core can run."""
    return tuple(env_id for env_id in core().env_ids() if not env_id.startswith(PETTINGZOO))


@cache
def native_teams() -> tuple[str, ...]:
    """Ids of envs with several agents that the core can run; Gymnasium does not know them."""
    return tuple(env_id for env_id in core().env_ids() if env_id.startswith(PETTINGZOO))


def may_be_native(env_id: str) -> bool:
    """Whether an id is of a family that the core knows; said without the core, which knows it exactly."""
    spec = gym.registry.get(bare_id(env_id))
    return spec is not None and str(spec.entry_point).startswith(_FAMILIES)


def make(
    env_id: str,
    num_envs: int = 1,
    *,
    threads: int = 0,
    autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    **kwargs: Any,
) -> NativeVectorEnv:
    """A Gymnasium vector env, stepped by the core on `threads` threads (0: one per core).

    The id is Gymnasium's, the path of a library, or `pettingzoo:MODULE`; other arguments are as for gym.make. The
    autoreset mode is one of Gymnasium's; its vector wrappers require `AutoresetMode.NEXT_STEP`. Of envs with several
    agents, every agent is an entry of the vector env.
    """
    return NativeVectorEnv(env_id, num_envs, threads, kwargs, autoreset_mode)
