"""A subject of a benchmark: runs whole iterations and times their phases; its process builds it from a recipe."""

from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.settings.config import Config


@dataclass(frozen=True)
class Window:
    """One timed window of whole iterations; steps are executed steps, without auto-reset steps and dead agents."""

    iterations: int
    steps: int
    rollout_s: float
    learn_s: float

    @property
    def total_s(self) -> float:
        """Both phases."""
        return self.rollout_s + self.learn_s

    @property
    def steps_per_s(self) -> float:
        """Steps per second of the whole iteration."""
        return self.steps / self.total_s

    @property
    def rollout_steps_per_s(self) -> float:
        """Steps per second of the rollout."""
        return self.steps / self.rollout_s

    @property
    def rollout_ms(self) -> float:
        """Milliseconds per rollout."""
        return 1000 * self.rollout_s / self.iterations

    @property
    def learn_ms(self) -> float:
        """Milliseconds of learning per iteration."""
        return 1000 * self.learn_s / self.iterations

    @property
    def step_us(self) -> float:
        """Cost of an env step while collecting, in microseconds of wall-clock time."""
        return 1e6 * self.rollout_s / self.steps


class Subject(Protocol):
    """Runs in a separate process, is warmed up, then measured in turns with other subjects."""

    def run(self, iterations: int) -> Window:
        """Run whole iterations, timed."""

    def close(self) -> None:
        """Release all resources."""


Recipe = dict[str, Any]
"""Plain data, so that nothing of the builder's state comes along."""


@dataclass(frozen=True)
class Plan:
    """One subject of a benchmark: its name in tables, how to build it, and its torch threads (None: it decides)."""

    name: str
    recipe: Recipe
    threads: int | None = None


def run_recipe(kind: str, config: Config) -> Recipe:
    """`training`: whole iterations of a configured run; `collecting`: its rollouts; `limit`: only their dynamics."""
    return {"kind": kind, "config": config.model_dump(mode="json")}
