"""Small populations for tests, and a backend that runs jobs in this process: no imports, so that rounds are fast."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.core.errors import SurefootError
from surefoot.core.parts import PartSettings
from surefoot.core.records import IterationReport
from surefoot.jobs.job import Job, Message
from surefoot.population.coordinator import run_population
from surefoot.population.display import SilentDisplay
from surefoot.population.log import Entry
from surefoot.population.settings import Plan, build_plan
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
    "parallel": 1,
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


class InlineStream:
    """A job in the thread that listens to it."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __iter__(self) -> Iterator[Message]:
        module, _, function = self._job.task.partition(":")
        said: list[Message] = []
        try:
            task = getattr(importlib.import_module(module), function)
            result = task(self._job.arguments, lambda progress: said.append({"progress": progress}))
            said.append({"result": result})
        except SurefootError as error:
            said.append({"error": str(error)})
        yield from said

    def kill(self) -> None:
        """It ends by itself."""


class InlineBackend:
    def start(self, job: Job) -> InlineStream:
        return InlineStream(job)

    def close(self) -> None:
        pass


def train(folder: Path, plan: Plan, watcher: Any = None) -> list[Entry]:
    return run_population(folder, plan, watcher or SilentDisplay(plan), InlineBackend())


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
