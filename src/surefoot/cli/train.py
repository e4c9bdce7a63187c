"""`surefoot train [PRESET|ENV_ID] ...`"""

import os
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.arguments import parse_with_settings, split_settings
from surefoot.errors import ConfigError
from surefoot.presets import DEFAULT, Configured, configured, preset_names
from surefoot.settings.layers import Raw, read_yaml
from surefoot.settings.registry import nearest
from surefoot.storage.run_folder import check_new


def main(arguments: list[str]) -> int:
    """Parse, then train."""
    rest, settings = split_settings(arguments)

    def train(
        target: str | None = None,
        /,
        config: Path | None = None,
        steps: str | None = None,
        seed: str | None = None,
        seeds: str | None = None,
        run_dir: Path | None = None,
        preset: str | None = None,
        start_from: Annotated[str | None, tyro.conf.arg(name="from")] = None,
    ) -> int:
        """Train on a preset or any Gymnasium environment; without a target, on the default preset.

        Args:
            target: a preset ('surefoot presets'), a Gymnasium id ('surefoot envs'), pettingzoo:MODULE, envpool:TASK
                or your own library, ./my_env.so
            config: a YAML file with settings that override the preset
            steps: total number of environment steps (train.steps), such as 200000 or 2e5
            seed: random seed (train.seed)
            seeds: several seeds, such as 1,2,3 or 1-5: one run each, side by side (docs/runs.md)
            run_dir: directory of the run; default: runs/<name>, with several seeds runs/<name>-seeds
            preset: a preset other than that of the environment, or none
            start_from: start from the weights and normalizers of a model (train.start_from): a run directory, a
                .safetensors file or zoo:NAME
        """
        # Of several processes, the first one has the directory; a folder of seeds may be continued.
        if os.environ.get("RANK", "0") == "0" and seeds is None:
            check_new(run_dir or Path("runs") / "new")
        shorthand = {"train.steps": steps, "train.seed": seed, "preset": preset, "train.start_from": start_from}
        named = {key: value for key, value in shorthand.items() if value is not None}
        run = chosen(target, config, settings, named)
        command = ("train", *arguments)
        if seeds is None:
            return run_new(run, target, run_dir, command)
        from surefoot.cli.seeds import train_new

        if seed is not None or "train.seed" in settings:
            raise ConfigError("--seeds: cannot be combined with --seed; list all seeds in --seeds")
        return train_new(run, seeds, target, run_dir, command)

    return parse_with_settings(train, "train", rest)


def chosen(target: str | None, file: Path | None, *layers: Raw) -> Configured:
    """Preset < YAML < command line; without a target, a file and an env id, the default preset."""
    settings = [{} if file is None else read_yaml(file), *layers]
    if target is not None:
        check_target(target)
    elif file is None and not any({"env", "env.id", "preset"} & layer.keys() for layer in layers):
        if any("train.start_from" in layer for layer in layers):
            raise ConfigError("--from: also name what to train on: surefoot train Hopper-v5 --from zoo:Hopper-v5")
        target = DEFAULT
    return configured(target, *settings)


def check_target(target: str) -> None:
    """Refuse what is neither a preset nor an env."""
    if target in preset_names():
        return
    import gymnasium as gym

    from surefoot.envs.adapters.atari import is_atari
    from surefoot.envs.library import is_library
    from surefoot.envs.packages import package_hint

    if not is_library(target) and ":" not in target and not is_atari(target) and target not in gym.registry:
        hint = package_hint(target) or nearest(target, [*preset_names(), *gym.registry])
        raise ConfigError(f"'{target}' is neither a preset nor a registered Gymnasium id{hint}")


def run_new(run: Configured, name: str | None, run_dir: Path | None, command: tuple[str, ...] = ()) -> int:
    """Start a run in a new directory."""
    from surefoot.cli.running import train_from_start
    from surefoot.training.alike import joined
    from surefoot.training.run_directory import RunDirectory

    with joined("train") as ranks:
        if not ranks.is_first:
            return train_from_start(run.config, None, ranks)
        directory = RunDirectory(run_dir) if run_dir else RunDirectory.unused(Path("runs"), name or run.config.env.id)
        return train_from_start(run.config, directory, ranks, run.line, command)
