"""Packages with environments for Gymnasium: which one has an unknown id, and how to install it."""

import importlib.util
import re
from dataclasses import dataclass

from surefoot.errors import EnvError


@dataclass(frozen=True)
class Package:
    """The ids of a package, the module that registers them, and the name that pip knows it by."""

    ids: str
    module: str
    install: str

    @property
    def is_installed(self) -> bool:
        """Whether the module can be imported."""
        return importlib.util.find_spec(self.module.partition(".")[0]) is not None


_PACKAGES = [
    Package(r"(MiniGrid|BabyAI)-.+", "minigrid", "minigrid"),
    Package(r"MiniWorld-.+", "miniworld", "miniworld"),
    Package(
        r"(highway|merge|roundabout|parking|intersection|racetrack|exit|u-turn|two-way|lane-keeping)(-\w+)*-v\d+",
        "highway_env",
        "highway-env",
    ),
    Package(
        r"(Fetch|HandReach|HandManipulate|AntMaze|PointMaze|FrankaKitchen|AdroitHand).*-v\d+",
        "gymnasium_robotics",
        "gymnasium-robotics",
    ),
    Package(r"Panda(Reach|Push|Slide|PickAndPlace|Stack|Flip).*-v\d+", "panda_gym", "panda-gym"),
    Package(r"Meta-World/.+", "metaworld", "metaworld"),
    Package(r"PyFlyt/.+", "PyFlyt.gym_envs", "PyFlyt"),
    Package(r"FlappyBird.*-v\d+", "flappy_bird_gymnasium", "flappy-bird-gymnasium"),
    Package(r"dm_control/.+", "shimmy", "'shimmy[dm-control]'"),
]


def package_hint(env_id: str) -> str:
    """For an id that nobody registered: what to write and what to install if a known package has it, else nothing."""
    package = next((known for known in _PACKAGES if re.fullmatch(known.ids, env_id)), None)
    if package is None:
        return ""
    install = "" if package.is_installed else f"run `pip install {package.install}`, then "
    return f"; it is registered by the package {package.module}: {install}use the id '{package.module}:{env_id}'"


def refuse_missing_module(env_id: str) -> None:
    """For `module:id`: an error that says what to install if the module of a known package is missing."""
    module, _, rest = env_id.rpartition(":")
    package = next((known for known in _PACKAGES if known.module == module), None)
    if package is not None and not package.is_installed:
        raise EnvError(f"environment '{rest}' requires {package.install}; run `pip install {package.install}`")
