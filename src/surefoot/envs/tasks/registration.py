"""Surefoot's own tasks under ids that Gymnasium knows; entry points are strings, so that nothing else is imported."""

import gymnasium as gym

OWN_TASKS: dict[str, tuple[str, int]] = {
    "AcrobotNoVel-v1": ("surefoot.envs.tasks.no_velocity:AcrobotNoVelocity", 500),
    "CartPoleNoVel-v1": ("surefoot.envs.tasks.no_velocity:CartPoleNoVelocity", 500),
    "PendulumNoVel-v1": ("surefoot.envs.tasks.no_velocity:PendulumNoVelocity", 200),
    "Probe-v0": ("surefoot.envs.tasks.probe:Probe", 16),
    "RepeatPrevious-v0": ("surefoot.envs.tasks.repeat_previous:RepeatPrevious", 2048),
    "TMaze-v0": ("surefoot.envs.tasks.t_maze:TMaze", 128),
}
"""Where each one is, and its time limit; the last two end by themselves before it, whatever their options."""


def register_envs() -> None:
    """Make the tasks known to Gymnasium, which loads no plugins of its own accord; a second call changes nothing."""
    for env_id, (entry_point, limit) in OWN_TASKS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point, max_episode_steps=limit)
