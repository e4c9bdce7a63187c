"""Small populations for tests, in this process, so that rounds are fast."""

from pathlib import Path
from typing import Any

from surefoot.data.records import IterationReport
from surefoot.population.coordinator import run_population
from surefoot.population.display import SilentDisplay
from surefoot.population.log import Entry
from surefoot.population.settings import Plan, build_plan
from surefoot.settings.parts import PartSettings
from surefoot.training.hooks import Hook

SMALL: dict[str, Any] = {
    "env": {"id": "CartPole-v1"},
    "rollout": {"num_envs": 2, "num_steps": 16},
    "ppo": {"batch_size": 32, "epochs": 1},
    "policy": {"hidden": [8]},
    "normalize": {"obs": True, "reward": True},
    "train": {"steps": 192},
    "log": {"tensorboard": False},
}
POPULATION: dict[str, Any] = {
    "members": 3,
    "iterations": 2,
    "episodes": 3,
    "backend": "inline",
    "tunables": {
        "optimizer.lr": {"low": 1e-4, "high": 1e-2, "scale": "log"},
        "ppo.gamma": {"low": 0.9, "high": 0.999, "scale": "one_minus"},
        "ppo.entropy_coef": {"low": 0.0, "high": 0.1},
    },
}


def small_raw(**population: Any) -> dict[str, Any]:
    return SMALL | {"population": POPULATION | population}


def small_plan(**population: Any) -> Plan:
    return build_plan(small_raw(**population))


def train(folder: Path, plan: Plan, watcher: Any = None) -> list[Entry]:
    return run_population(folder, plan, watcher or SilentDisplay(plan))


class FailAbove(Hook):
    """A hook that raises if the learning rate is above a limit."""

    class Settings(PartSettings):
        lr: float = 1.0

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._limit = settings.lr

    def after_iteration(self, report: IterationReport) -> None:
        if report.learned.lr > self._limit:
            raise ValueError("too fast")
