"""`surefoot train [PRESET|ENV_ID] ...`"""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import tyro

from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.core.config import Config
from surefoot.core.errors import ConfigError, RunDirectoryError
from surefoot.core.layers import Raw, build_config, read_yaml
from surefoot.core.registry import nearest
from surefoot.presets import DEFAULT, load_preset, preset_names


def main(arguments: list[str]) -> int:
    """Parse, then train."""
    rest, settings = split_settings(arguments)

    def train(
        target: Annotated[str | None, tyro.conf.Positional] = None,
        /,
        config: Path | None = None,
        steps: str | None = None,
        seed: int | None = None,
        run_dir: Path | None = None,
    ) -> int:
        """Train a preset or any Gymnasium environment; without a target, the default preset.

        Args:
            target: a preset ('surefoot presets'), a Gymnasium id ('surefoot envs'), pettingzoo:MODULE, envpool:TASK
                or a library of your own, ./my_env.so
            config: a YAML file with settings, on top of the preset's
            steps: environment steps in all (train.steps), such as 200000 or 2e5
            seed: seed of everything (train.seed)
            run_dir: folder of the run; runs/<name> if not given
        """
        shorthand = {"train.steps": steps, "train.seed": seed}
        named = {key: value for key, value in shorthand.items() if value is not None}
        layers = [{} if config is None else read_yaml(config), settings, named]
        return run_new(build_config(target_settings(target, has_config=config is not None), *layers), target, run_dir)

    try:
        return parse(train, "train", rest)
    finally:
        if wants_help(rest):
            print_settings()


def target_settings(target: str | None, has_config: bool) -> Raw:
    """A preset's settings, or those of any other Gymnasium id with the defaults."""
    if target is None:
        return {} if has_config else load_preset(DEFAULT)
    if target in preset_names():
        return load_preset(target)
    import gymnasium as gym

    from surefoot.envs.library import is_library
    from surefoot.envs.tasks.registration import register_envs

    register_envs()
    if is_library(target):
        return {"env": {"id": target}}
    if ":" not in target and target not in gym.registry:
        known = [*preset_names(), *gym.registry]
        raise ConfigError([f"'{target}' is neither a preset nor a Gymnasium id{nearest(target, known)}"])
    return {"env": {"id": target}}


def run_new(config: Config, name: str | None, run_dir: Path | None) -> int:
    """Start a run in a new directory."""
    from surefoot.cli.running import finish
    from surefoot.compose import Specs, build_env, build_policy, build_trainer
    from surefoot.run import Run
    from surefoot.training.run_directory import RunDirectory

    directory = RunDirectory(run_dir) if run_dir else RunDirectory.unused(Path("runs"), name or config.env.id)
    if directory.holds_run:
        raise RunDirectoryError(
            f"{directory.path} already holds a run; 'surefoot resume {directory.path}' goes on with it, or choose"
            " another --run-dir"
        )
    with closing(build_env(config)) as env:
        # Built first: what does not fit together leaves no empty run behind.
        specs = Specs(env.obs_spec, env.action_spec)
        trainer = build_trainer(config, env, build_policy(config, specs))
        with directory:
            directory.write_config(config)
            return finish(Run(trainer, config, specs, None, directory))
