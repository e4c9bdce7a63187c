"""Shared by benchmarks of a configured run: its settings, and engines by name."""

from pathlib import Path
from typing import Annotated

import tyro

from surefoot.core.config import Config
from surefoot.core.layers import Raw, build_config, read_yaml

Target = Annotated[str | None, tyro.conf.Positional]
Switch = Annotated[bool, tyro.conf.FlagCreatePairsOff]


def run_config(target: str | None, file: Path | None, settings: Raw) -> Config:
    """The config to measure."""
    from surefoot.cli.train import target_settings

    # A benchmark has no fixed number of steps, so schedules must not reach their end.
    endless = {"train": {"steps": 10**12}}
    yaml = {} if file is None else read_yaml(file)
    return build_config(target_settings(target, has_config=file is not None), yaml, endless, settings)


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
