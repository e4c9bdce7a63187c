"""Shared by benchmarks of a configured run: its settings, and engines by name."""

from pathlib import Path
from typing import Annotated

import tyro

from surefoot.settings.config import Config
from surefoot.settings.layers import Raw

Target = Annotated[str | None, tyro.conf.Positional]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def run_config(target: str | None, file: Path | None, settings: Raw) -> Config:
    """The config to measure."""
    from surefoot.cli.train import chosen

    # A benchmark has no fixed number of steps, so schedules must not reach their end.
    return chosen(target, file, {"train.steps": 10**12}, settings).config


def known_engines() -> list[str]:
    """Names of all engines that run on this machine; one for a cluster must be asked for."""
    from surefoot.envs.engines import engines

    return [name for name in engines.names() if engines[name].steps_here]


def named_engines(names: tuple[str, ...]) -> list[str]:
    """The given engine names, validated."""
    from surefoot.envs.engines import engines

    for name in names:
        engines[name]
    return list(dict.fromkeys(names))
