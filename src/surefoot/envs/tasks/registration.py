"""Registers Surefoot's tasks with Gymnasium; entry points are strings, so that nothing else is imported."""

import gymnasium as gym

OWN_TASKS: dict[str, tuple[str, int | None]] = {
    "AcrobotNoVel-v1": ("surefoot.envs.tasks.no_velocity:AcrobotNoVelocity", 500),
    "CartPoleNoVel-v1": ("surefoot.envs.tasks.no_velocity:CartPoleNoVelocity", 500),
    "Market-v0": ("surefoot.envs.tasks.market:Market", None),
    "PendulumNoVel-v1": ("surefoot.envs.tasks.no_velocity:PendulumNoVelocity", 200),
    "Probe-v0": ("surefoot.envs.tasks.probe:Probe", 16),
    "RepeatPrevious-v0": ("surefoot.envs.tasks.repeat_previous:RepeatPrevious", 2048),
    "RiskyCorridor-v0": ("surefoot.envs.tasks.risky_corridor:RiskyCorridor", 10),
    "TMaze-v0": ("surefoot.envs.tasks.t_maze:TMaze", 128),
}
"""Entry point and time limit of each task; RepeatPrevious and TMaze terminate before theirs, Market has a horizon."""


def register_envs() -> None:
    """Register the tasks, because Gymnasium does not load plugins automatically; a second call changes nothing."""
    for env_id, (entry_point, limit) in OWN_TASKS.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point, max_episode_steps=limit)
