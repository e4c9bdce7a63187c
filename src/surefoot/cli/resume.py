"""`surefoot resume RUN ...`"""

import os
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli.arguments import parse, print_settings, split_settings, wants_help
from surefoot.cli.lines import LABEL, wrapped
from surefoot.core.errors import RunDirectoryError
from surefoot.core.layers import Raw, build_config, merge, read_yaml
from surefoot.core.run_folder import check_run
from surefoot.core.trust import names_in
from surefoot.inspection.seeds_folder import is_seeds_folder
from surefoot.zoo import PREFIX

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
            run: the run directory, or a folder with several seeds, of which all that are not finished continue
            steps: new total number of environment steps, to extend the run
            trust: import modules and load libraries that the checkpoint names, but not config.yaml
        """
        if str(run).startswith(PREFIX):
            name = str(run).removeprefix(PREFIX)
            raise RunDirectoryError(
                f"{run} has no run to resume; start one from it: surefoot train {name} --from {run}"
            )
        # Of several processes, the first one has the directory.
        if os.environ.get("RANK", "0") == "0" and not is_seeds_folder(run):
            check_run(run)
        changes = merge(settings, {} if steps is None else {"train.steps": steps})
        return go_on(run, changes, trust, ("resume", *arguments))

    try:
        return parse(resume, "resume", rest)
    finally:
        if wants_help(rest):
            print_settings()


def go_on(path: Path, changes: Raw, trust: bool = False, command: tuple[str, ...] = ()) -> int:
    """Rebuild the run from its config and its newest valid checkpoint, or the runs in a folder of seeds."""
    if is_seeds_folder(path):
        from surefoot.cli.seeds import train_missing

        return train_missing(path, changes, command)
    from surefoot.cli.running import finish, log_command, train_from_start, training_envs
    from surefoot.compose import resumed_config
    from surefoot.continued import SavedRun, continued_run
    from surefoot.core.ranks import together
    from surefoot.core.saved import Saved, reading
    from surefoot.training.run_directory import RunDirectory

    with together() as ranks:
        directory = RunDirectory(path) if ranks.is_first else None
        # Only the first process reads files: the others may run on machines without them.
        written = ranks.gather(None if directory is None else _written(directory))[0]
        assert written is not None
        if written.is_new:
            if ranks.is_first:
                print(f"{path} has not begun yet: starting it", flush=True)
            return train_from_start(build_config(written.config, changes), directory, ranks, "", command)
        with directory or nullcontext():
            found = ranks.gather(None if directory is None else directory.newest())[0]
            assert found is not None
            saved = SavedRun.of(found, trust or names_in([written.config, changes]))
            config = resumed_config(saved.config, merge(written.config, changes))
            with reading(saved.path):
                step = Saved(saved.state)["progress"]["step"].integer()
            if step >= config.train.steps and not saved.state.get("evaluation_due"):
                raise RunDirectoryError(
                    f"{path} is at step {step:,} and has already finished its {config.train.steps:,} steps; pass a"
                    " larger total with --steps"
                )
            with closing(training_envs(config, ranks)) as env:
                run = continued_run(config, env, saved, directory, ranks=ranks)
                if directory is not None:
                    directory.write_config(config)
                    log_command(command)
                    _announce(directory, saved.path)
                return finish(run)


@dataclass(frozen=True)
class Written:
    """What a run directory says about its run."""

    config: Raw
    is_new: bool


def _written(directory: "RunDirectory") -> Written:
    """The settings in config.yaml: it may have been edited, and its changes are treated like the command line's."""
    check_run(directory.path)
    return Written(build_config(read_yaml(directory.config_file)).model_dump(mode="json"), not directory.has_begun)


def _announce(directory: "RunDirectory", checkpoint: Path) -> None:
    skipped = directory.saved().index(checkpoint)
    note = f" (skipped {skipped} newer unreadable checkpoint{'s' * (skipped > 1)}, see log.txt)" if skipped else ""
    print(wrapped(f"resuming {directory.path} from {checkpoint.name}{note}", LABEL), flush=True)
