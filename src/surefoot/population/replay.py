"""One ordinary run with the values that the winner of a population and its ancestors had, round by round."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from surefoot.compose import build_env, resumed_config, saved_setup
from surefoot.core.config import Config
from surefoot.core.errors import PopulationError
from surefoot.core.layers import build_config
from surefoot.core.records import IterationReport
from surefoot.core.trust import names_in
from surefoot.population.decisions import Values, ranked
from surefoot.population.files import PopulationFiles
from surefoot.population.log import Entry, PopulationLog
from surefoot.population.member import build_trainer_of
from surefoot.population.settings import Plan
from surefoot.run import Run
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory


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
    print(f"next      surefoot evaluate|doctor|report {run_dir}")
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
        config = build_config(plan.config.model_dump(mode="json"), values)
        saved = directory.newest() if directory.saved() else None
        if saved is not None:
            path, state = saved
            before: Config = saved_setup(state, path, names_in(config.model_dump(mode="json")))[0]
            config = resumed_config(before, config.model_dump(mode="json"))
            progress = state["progress"]
            if progress["step"] >= config.train.steps or (until is not None and progress["iteration"] >= until):
                return 0
        with closing(build_env(config)) as env:
            trainer, specs = build_trainer_of(config, env, saved)
            run = Run(trainer, config, specs, None, directory, [] if until is None else [_StopAt(until)])
            if saved is not None:
                run.load_state(saved[1], saved[0])
            directory.write_config(config)
            _, code = run.train()
            return code
