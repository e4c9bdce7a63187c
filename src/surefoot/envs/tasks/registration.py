"""Registers Surefoot's tasks with Gymnasium; entry points are strings, so that nothing else is imported."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

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

_GYMNASIUM = "gymnasium"


def register_envs() -> None:
    """Register the tasks; a second call changes nothing. `make_vec` makes them in the core."""
    import gymnasium as gym

    for env_id, (entry_point, limit) in OWN_TASKS.items():
        if env_id not in gym.registry:
            in_core = f"surefoot.envs.tasks.in_core:{env_id}"
            gym.register(env_id, entry_point, max_episode_steps=limit, vector_entry_point=in_core)


def register_with_gymnasium() -> None:
    """Register the tasks now, or when Gymnasium is imported: `import surefoot` alone does not wait for it."""
    if _GYMNASIUM in sys.modules:
        register_envs()
    else:
        sys.meta_path.insert(0, _Waiting())


class _Waiting:
    """A finder of modules that waits for the import of Gymnasium, and is removed when that is executed, not found."""

    def find_spec(self, fullname: str, path: Any = None, target: "ModuleType | None" = None) -> "ModuleSpec | None":
        if fullname != _GYMNASIUM:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((one for one in found if one is not None), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module: "ModuleType") -> None:
                run(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    register_envs()

            spec.loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec
