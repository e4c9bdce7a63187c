"""Saves and restores Gymnasium envs in the middle of an episode, if their complete state is known.

Custom envs can implement `save_state() -> dict` and `load_state(dict)`, with any values that checkpoints support. Of
Gymnasium's envs, the classic-control and MuJoCo tasks are supported.
"""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from surefoot.envs.protocol import OWN_STATE
from surefoot.envs.tasks.option_checks import physical_state
from surefoot.errors import EnvError

Snapshot = dict[str, Any]

_WRAPPERS: dict[type, tuple[str, ...]] = {
    TimeLimit: ("_elapsed_steps",),
    OrderEnforcing: ("_has_reset",),
    PassiveEnvChecker: (),
}
_CLASSIC: dict[str, tuple[str, ...]] = {
    "CartPoleEnv": ("state", "steps_beyond_terminated"),
    "AcrobotEnv": ("state",),
    "MountainCarEnv": ("state",),
    "Continuous_MountainCarEnv": ("state",),
    "PendulumEnv": ("state", "last_u"),
}
# mjData's derived arrays that Gymnasium's tasks read before the next mj_step: they lag the state by one substep, so
# mj_forward on the restored state would not give the same numbers.
_DERIVED = [
    "xpos",
    "xquat",
    "xmat",
    "xipos",
    "geom_xpos",
    "site_xpos",
    "subtree_com",
    "cinert",
    "cvel",
    "cfrc_ext",
    "qfrc_actuator",
    "actuator_force",
    "qfrc_constraint",
    "sensordata",
]


def save_env(env: gym.Env[Any, Any]) -> Snapshot | None:
    """The complete state of an env, or None if some part of it is unknown."""
    wrappers = []
    while isinstance(env, gym.Wrapper):
        if type(env) not in _WRAPPERS:
            return None
        wrappers.append({name: getattr(env, name) for name in _WRAPPERS[type(env)]})
        env = env.env
    inner = _save_inner(env)
    if inner is None:
        return None
    return {"wrappers": wrappers, "inner": inner, "rng": env.np_random.bit_generator.state}


def load_env(env: gym.Env[Any, Any], snapshot: Snapshot) -> None:
    """Restore a saved state in an env that was created in the same way."""
    env.reset()
    for attributes in snapshot["wrappers"]:
        if type(env) not in _WRAPPERS:
            raise EnvError(
                "the saved state belongs to an env with different wrappers; create the env as when it was saved"
            )
        for name in _WRAPPERS[type(env)]:  # a file must not choose what is set
            setattr(env, name, attributes[name])
        env = env.env  # type: ignore[attr-defined]
    env.np_random.bit_generator.state = snapshot["rng"]
    _load_inner(env, snapshot["inner"])


def _save_inner(env: Any) -> Snapshot | None:
    if hasattr(env, "save_state"):
        return {OWN_STATE: env.save_state()}
    if type(env).__module__.startswith("gymnasium.envs.classic_control"):
        names = _CLASSIC.get(type(env).__name__)
        return None if names is None else {name: getattr(env, name, None) for name in names}
    if _is_mujoco(env):
        derived = {name: np.array(getattr(env.data, name)) for name in _DERIVED}
        return {"integration": _mujoco_state(env), **derived}
    return None


def _load_inner(env: Any, inner: Snapshot) -> None:
    if hasattr(env, "save_state"):
        env.load_state(inner[OWN_STATE])
    elif _is_mujoco(env):
        import mujoco

        state = np.asarray(inner["integration"], dtype=np.float64)
        mujoco.mj_setState(env.model, env.data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        for name in _DERIVED:
            getattr(env.data, name)[...] = inner[name]
    else:
        for name in _CLASSIC[type(env).__name__]:
            current = env.state if name == "state" else None
            setattr(env, name, physical_state(name, inner[name], current))


def _is_mujoco(env: Any) -> bool:
    """Whether this is an env of Gymnasium; compared by name, so that MuJoCo is imported only if it is used."""
    return type(env).__module__.startswith("gymnasium.envs.mujoco")


def _mujoco_state(env: Any) -> Any:
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(env.model, kind))
    mujoco.mj_getState(env.model, env.data, state, kind)
    return state
