"""`surefoot resume RUN ...`"""

from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.core.errors import RunDirectoryError
from surefoot.core.layers import Raw, build_config, merge, read_yaml
from surefoot.core.trust import names_in

if TYPE_CHECKING:
    from surefoot.training.run_directory import RunDirectory


def main(arguments: list[str]) -> int:
    """Parse, then resume."""
    rest, settings = split_settings(arguments)

    def resume(
        run: Annotated[Path, tyro.conf.Positional],
        /,
        steps: str | None = None,
        trust: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    ) -> int:
        """Continue a run from its newest valid checkpoint, and apply allowed changes of settings.

        Args:
            run: the run directory
            steps: new total number of environment steps, to extend the run
            trust: import modules and load libraries that the checkpoint names, but not config.yaml
        """
        return go_on(run, merge(settings, {} if steps is None else {"train.steps": steps}), trust)

    try:
        return parse(resume, "resume", rest)
    finally:
        if wants_help(rest):
            print_settings()


def go_on(path: Path, changes: Raw, trust: bool = False) -> int:
    """Rebuild the run from its config and its newest valid checkpoint."""
    from surefoot.cli.running import finish, train_from_start, training_envs
    from surefoot.compose import (
        build_saved_policy,
        build_trainer,
        check_spaces,
        resumed_config,
        saved_setup,
    )
    from surefoot.core.ranks import together
    from surefoot.core.saved import Saved, reading
    from surefoot.run import Run
    from surefoot.training.run_directory import RunDirectory

    with together() as ranks:
        directory = RunDirectory(path) if ranks.is_first else None
        # Only the first process reads files: the others may run on machines without them.
        written = ranks.gather(None if directory is None else _written(directory))[0]
        assert written is not None
        if written.is_new:
            if ranks.is_first:
                print(f"{path} has not begun yet: starting it", flush=True)
            return train_from_start(build_config(written.config, changes), directory, ranks)
        with directory or nullcontext():
            found = ranks.gather(None if directory is None else directory.newest())[0]
            assert found is not None
            checkpoint, state = found
            saved, specs = saved_setup(state, checkpoint, trust or names_in([written.config, changes]))
            config = resumed_config(saved, merge(written.config, changes))
            with reading(checkpoint):
                step = Saved(state)["progress"]["step"].integer()
            if step >= config.train.steps and not state.get("evaluation_due"):
                raise RunDirectoryError(
                    f"{path} has already finished its {config.train.steps} steps; pass a larger total with --steps"
                )
            with closing(training_envs(config, ranks)) as env:
                check_spaces(env, specs)
                trainer = build_trainer(config, env, build_saved_policy(config, specs, state, checkpoint), ranks)
                run = Run(trainer, config, specs, None, directory, ranks=ranks)
                run.load_state(state, checkpoint)
                if directory is not None:
                    directory.write_config(config)
                    _announce(directory, checkpoint)
                return finish(run)


@dataclass(frozen=True)
class Written:
    """What a run directory says about its run."""

    config: Raw
    is_new: bool


def _written(directory: "RunDirectory") -> Written:
    """The settings in config.yaml: it may have been edited, and its changes are treated like the command line's."""
    if not directory.holds_run:
        raise RunDirectoryError(
            f"{directory.path} is not a run directory (it has no config.yaml); pass the one that 'surefoot train'"
            " printed"
        )
    return Written(build_config(read_yaml(directory.config_file)).model_dump(mode="json"), not directory.has_begun)


def _announce(directory: "RunDirectory", checkpoint: Path) -> None:
    skipped = directory.saved().index(checkpoint)
    note = f" (skipped {skipped} newer unreadable checkpoint{'s' * (skipped > 1)}, see log.txt)" if skipped else ""
    print(f"resuming {directory.path} from {checkpoint.name}{note}", flush=True)
