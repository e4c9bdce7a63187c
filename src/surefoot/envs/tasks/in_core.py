"""The tasks as vector envs of the core, by id: what `gymnasium.make_vec` makes of them."""

from functools import partial
from typing import Any

from gymnasium.vector import AutoresetMode

from surefoot.envs.native import make
from surefoot.envs.native_vector import NativeVectorEnv
from surefoot.envs.tasks.registration import OWN_TASKS
from surefoot.errors import NativeError


def _made(env_id: str, *, render_mode: str | None = None, **kwargs: Any) -> NativeVectorEnv:
    if render_mode is not None:
        raise NativeError(
            f"the vector env of {env_id} in the core draws no pictures, so it takes no render_mode; pass"
            " vectorization_mode='sync' to draw, or make one env with gymnasium.make"
        )
    # As Gymnasium's own vector envs do by default, which its wrappers require.
    return make(env_id, **({"autoreset_mode": AutoresetMode.NEXT_STEP} | kwargs))


def __getattr__(env_id: str) -> Any:
    if env_id in OWN_TASKS:
        return partial(_made, env_id)
    raise AttributeError(env_id)
