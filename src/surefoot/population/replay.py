"""One ordinary run with the values that the winner of a population and its ancestors had, round by round."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from surefoot.assembly import assemble
from surefoot.compose import build_env
from surefoot.data.records import IterationReport
from surefoot.errors import PopulationError
from surefoot.population.decisions import Values, ranked
from surefoot.population.files import PopulationFiles
from surefoot.population.log import Entry, PopulationLog
from surefoot.population.settings import Plan
from surefoot.saved_run import SavedRun, resumed_config
from surefoot.settings.layers import rebuilt
from surefoot.storage.trust import names_in
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory

REPLAY = "replay"
"""The directory of the run in that of its population, unless it is told another one."""


def lineage(rounds: Sequence[Sequence[Entry]]) -> list[Entry]:
    """The winner of the last round and its ancestors, one per round from the first."""
    last = rounds[-1]
    member = ranked([entry.score for entry in last], [entry.has_failed for entry in last])[0]
    found = [last[member]]
    for entries in reversed(rounds[:-1]):
        found.append(entries[entries[found[-1].member].parent])
    return found[::-1]


def replay_winner(folder: Path, plan: Plan, run_dir: Path) -> int:
    """Train the run, or continue it after an interruption; returns the exit code."""
    rounds = PopulationLog(PopulationFiles(folder).log, plan.population.members).read()
    if not rounds:
        raise PopulationError(f"{folder} has no finished round yet; run 'surefoot population resume {folder}' first")
    schedule = [entry.values for entry in lineage(rounds)]
    for number, values in enumerate(schedule, 1):
        until = number * plan.population.iterations if number < len(schedule) else None
        code = _train(plan, values, until, RunDirectory(run_dir))
        if code:
            print(f"stopped; 'surefoot population replay {folder} --run-dir {run_dir}' continues the run")
            return code
    print(f"run       {run_dir}")
    return 0


class _StopAt(Hook):
    """Ends the run after an iteration."""

    def __init__(self, iteration: int) -> None:
        super().__init__()
        self._iteration = iteration

    def after_iteration(self, report: IterationReport) -> None:
        if report.progress.iteration >= self._iteration:
            self.run.stop(f"iteration {self._iteration}: the next values begin")


def _train(plan: Plan, values: Values, until: int | None, directory: RunDirectory) -> int:
    """Train to an iteration, or to the end; what is done already is not repeated."""
    with directory:
        config = rebuilt(plan.config, values)
        wanted = config.model_dump(mode="json")
        saved = SavedRun.of(directory.newest(), names_in(wanted)) if directory.has_begun else None
        if saved is not None:
            config = resumed_config(saved.config, wanted)
            progress = saved.state["progress"]
            if progress["step"] >= config.train.steps or (until is not None and progress["iteration"] >= until):
                return 0
        with closing(build_env(config)) as env:
            hooks = [] if until is None else [_StopAt(until)]
            run = assemble(config, env, saved, directory=directory, hooks=hooks)
            directory.write_config(config)
            _, code = run.train()
            return code
