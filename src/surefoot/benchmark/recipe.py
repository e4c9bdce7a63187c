"""How to build a subject in another process: plain data, so that nothing of the builder's state comes along."""

from dataclasses import dataclass
from typing import Any

from surefoot.settings.config import Config

Recipe = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """One subject of a benchmark: its name in tables, how to build it, and its torch threads (None: it decides)."""

    name: str
    recipe: Recipe
    threads: int | None = None


def training_recipe(config: Config) -> Recipe:
    """Whole iterations of a configured run."""
    return {"kind": "training", "config": config.model_dump(mode="json")}


def collecting_recipe(config: Config) -> Recipe:
    """Only the rollouts of a configured run."""
    return {"kind": "collecting", "config": config.model_dump(mode="json")}


def limit_recipe(config: Config) -> Recipe:
    """The dynamics alone of what the native engine collects."""
    return {"kind": "limit", "config": config.model_dump(mode="json")}
