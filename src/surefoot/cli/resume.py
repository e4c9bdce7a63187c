"""`surefoot resume RUN ...`"""

import os
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.cli.arguments import Switch, parse_with_settings, split_settings
from surefoot.cli.lines import LABEL, wrapped
from surefoot.cli.trained import or_in_python
from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.seeds_folder import is_seeds_folder
from surefoot.output.quoted import quoted
from surefoot.settings.layers import Raw, build_config, merge, read_yaml
from surefoot.storage.run_folder import check_new, check_run
from surefoot.storage.trust import names_in
from surefoot.zoo import PREFIX

if TYPE_CHECKING:
    from surefoot.saved_run import SavedRun
    from surefoot.settings.config import Config
    from surefoot.training.run_directory import RunDirectory


def main(arguments: list[str]) -> int:
    """Parse, then resume."""
    rest, settings = split_settings(arguments)

    def resume(
        run: Path,
        /,
        steps: str | None = None,
        checkpoint: str | None = None,
        run_dir: Path | None = None,
        trust: Switch = False,
    ) -> int:
        """Continue a run from its newest valid checkpoint, or from another one, and apply allowed changes of settings.

        Args:
            run: the run directory, or a folder with several seeds, of which all that are not finished continue
            steps: new total number of environment steps, to extend the run
            checkpoint: the step of the checkpoint to continue from; any but the newest one requires --run-dir
            run_dir: a new directory for the continued run, which takes over the records up to the checkpoint; the old
                one is unchanged
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
            if run_dir is not None:
                check_new(run_dir)
        changes = merge(settings, {} if steps is None else {"train.steps": steps})
        return go_on(run, changes, trust, ("resume", *arguments), _step(checkpoint), run_dir)

    return parse_with_settings(resume, "resume", rest)


def _step(text: str | None) -> int | None:
    """A step, which may be written as 1e3."""
    if text is None:
        return None
    try:
        step = float(text) if not text.isdecimal() else int(text)
    except ValueError:
        step = -1
    if not 0 <= step < 2**63 or step != int(step):
        raise ConfigError(f"--checkpoint: pass the step of a checkpoint, such as 4096, got {quoted(text)}")
    return int(step)


def go_on(
    path: Path,
    changes: Raw,
    trust: bool = False,
    command: tuple[str, ...] = (),
    checkpoint: int | None = None,
    run_dir: Path | None = None,
) -> int:
    """Rebuild the run from its config and a checkpoint, or the runs in a folder of seeds."""
    is_apart = checkpoint is not None or run_dir is not None
    if is_seeds_folder(path):
        from surefoot.cli.seeds import train_missing

        if is_apart:
            raise RunDirectoryError(f"{path} holds several seeds; pass one of them with --checkpoint and --run-dir")
        return train_missing(path, changes, command)
    from surefoot.assembly import assemble
    from surefoot.cli.running import finish, log_command, train_from_start, training_envs
    from surefoot.training.alike import check_settings, joined
    from surefoot.training.run_directory import RunDirectory

    with joined("resume") as ranks:
        source = RunDirectory(path) if ranks.is_first else None
        new = None if source is None or run_dir is None else RunDirectory(run_dir)
        # Only the first process reads files: the others may run on machines without them.
        written = ranks.gather(None if source is None else _written(source))[0]
        assert written is not None
        if written.is_new and not is_apart:
            if ranks.is_first:
                print(f"{path} has not begun yet: starting it", flush=True)
            return train_from_start(build_config(written.config, changes), source, ranks, "", command)
        with nullcontext() if source is None or new else source:  # a run that is only read may still be training
            found = ranks.gather(None if source is None else _found(source, checkpoint, new is not None))[0]
            assert found is not None
            saved, config = _checked(found, path, written.config, changes, trust)
            check_settings(ranks, config)
            more = f"learn({config.train.steps - found.step}, run_dir={str(run_dir or path)!r})"
            with ExitStack() as opened:
                with or_in_python(saved.path, more):
                    env = opened.enter_context(closing(training_envs(config, ranks)))
                    directory = new or source
                    begun: AbstractContextManager[None] = nullcontext()
                    if new is not None and source is not None:
                        opened.enter_context(new)
                        begun = new.taking_over(source, found.path.name, found.state, found.step)
                    with begun:
                        run = assemble(config, env, saved, directory=directory, ranks=ranks)
                if directory is not None:
                    directory.write_config(config)
                    log_command(command)
                    _announce(found, path, run_dir)
                return finish(run)


def _checked(found: "Found", path: Path, own: Raw, changes: Raw, trust: bool) -> "tuple[SavedRun, Config]":
    """The checkpoint with its own config, and the config to continue with; refused if nothing is left to do."""
    from surefoot.saved_run import SavedRun, resumed_config

    saved = SavedRun.of((found.path, found.state), trust or names_in([own, changes]))
    config = resumed_config(saved.config, merge(own, changes))
    if found.step >= config.train.steps and found.is_complete:
        raise RunDirectoryError(
            f"{path} is at step {found.step:,} and has already finished its {config.train.steps:,} steps; pass a"
            " larger total with --steps"
        )
    return saved, config


@dataclass(frozen=True)
class Written:
    """What a run directory says about its run."""

    config: Raw
    is_new: bool


def _written(directory: "RunDirectory") -> Written:
    """The settings in config.yaml: it may have been edited, and its changes are treated like the command line's."""
    check_run(directory.path)
    return Written(build_config(read_yaml(directory.config_file)).model_dump(mode="json"), not directory.has_begun)


@dataclass(frozen=True)
class Found:
    """The checkpoint to continue from."""

    path: Path
    state: dict[str, Any]
    step: int
    is_complete: bool
    """Whether neither its evaluation nor its record is missing."""
    skipped: int
    """Number of newer checkpoints that cannot be read."""


def _found(directory: "RunDirectory", checkpoint: int | None, is_elsewhere: bool) -> Found:
    """The newest readable checkpoint, or the one of a step; newer ones are never overwritten."""
    from surefoot.storage.saved import Saved, reading
    from surefoot.training.checkpoint import read_checkpoint

    if checkpoint is None:
        path, state = directory.newest()
        skipped = directory.saved().index(path)
    else:
        path, skipped = directory.saved_at(checkpoint), 0
        newest = directory.saved()[0]
        if path != newest and not is_elsewhere:
            raise RunDirectoryError(
                f"{directory.path} has newer checkpoints, up to {newest.name}, which continuing from step {checkpoint}"
                " would overwrite; add --run-dir NEW to continue in another directory"
            )
        state = read_checkpoint(path)
    with reading(path):
        step = Saved(state)["progress"]["step"].integer()
    is_complete = not state.get("evaluation_due") and (not state.get("record") or directory.has_record(step))
    return Found(path, state, step, is_complete, skipped)


def _announce(found: Found, path: Path, run_dir: Path | None) -> None:
    skipped = found.skipped
    note = f" (skipped {skipped} newer unreadable checkpoint{'s' * (skipped > 1)}, see log.txt)" if skipped else ""
    where = f" in {run_dir}" if run_dir else ""
    print(wrapped(f"resuming {path} from {found.path.name}{where}{note}", LABEL), flush=True)
