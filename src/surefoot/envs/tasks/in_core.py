"""The tasks as vector envs of the core, by id: what `gymnasium.make_vec` makes of them."""

from functools import partial
from typing import Any

from gymnasium.vector import AutoresetMode

from surefoot.envs.native import make
from surefoot.envs.tasks.registration import OWN_TASKS


def __getattr__(env_id: str) -> Any:
    if env_id in OWN_TASKS:
        # As Gymnasium's own vector envs do by default, which its wrappers require.
        return partial(make, env_id, autoreset_mode=AutoresetMode.NEXT_STEP)
    raise AttributeError(env_id)
