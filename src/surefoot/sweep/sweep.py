"""Runs a sweep: begins trials, watches their runs, stops bad ones, and writes down the best settings."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.compose import build_env
from surefoot.errors import ConfigError, SweepError
from surefoot.evaluation.evaluation import check_best_metric
from surefoot.jobs.job import Backend, Job
from surefoot.jobs.local import LocalBackend
from surefoot.jobs.pool import MOST_DEATHS, Event, Pool
from surefoot.machine.cores import available_cores
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw, rebuilt
from surefoot.settings.ranges import Range
from surefoot.storage.folder_lock import locked
from surefoot.sweep.directory import BEST, DATABASE, keep_settings, refuse_unknown_runs, write_settings
from surefoot.sweep.settings import SweepConfig
from surefoot.sweep.study import Study, Trial, import_optuna
from surefoot.sweep.trial import run_finals
from surefoot.training.run_directory import RunDirectory

NEVER = 2
"""A score that was never reached counts as reached after this many times the length of the run."""


@dataclass
class _Active:
    """A trial whose runs are under way."""

    trial: Trial
    runs: dict[str, list[list[float]]]
    """Evaluations of each run by the name of its job: step, seconds, score."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    deaths: int = 0
    reported: int = 0


class Sweep:
    """A sweep in a directory, with its base config and its section."""

    def __init__(self, config: Config, sweep: SweepConfig, path: Path) -> None:
        import_optuna()
        self._config, self._sweep, self._path = config, sweep, path
        self._active: dict[int, _Active] = {}

    def run(self) -> Trial:
        """Run all trials that are not finished yet; returns the best one."""
        with closing(build_env(self._config, rows=1)) as env:  # before a trial begins
            check_best_metric(self._sweep.objective.metric, env.metrics, "sweep.objective.metric")
        with locked(self._path, "sweep in"):
            keep_settings(self._path, self._config, self._sweep)
            with Study(self._path / DATABASE, self._sweep, self._config.train.eval_every) as self._study:
                refuse_unknown_runs(self._path, self._study.numbers())
                self._study.discard_torn()
                self._run_trials()
                self._run_finals()
                return self._conclude()

    def _run_trials(self) -> None:
        trials = self._study.trials()
        unfinished = [one for one in trials if one.state == "running"]
        about = self._about(trials)
        self._say("sweep", f"{self._sweep.num_trials} trials in {self._path}" + f" ({about})" * bool(about))
        if len(trials) >= self._sweep.num_trials and not unfinished:
            return
        pool, slots = self._pool()
        with pool:
            for trial in unfinished:
                self._refuse_lost(trial)
            for trial in unfinished:
                self._submit(pool, trial)
            self._fill(pool, slots)
            for event in pool.events():
                self._handle(pool, event)
                self._fill(pool, slots)

    def _run_finals(self) -> None:
        """Train the best trials with other seeds. Those that are trained already have their results at once."""
        seeds = range(self._sweep.seeds, self._sweep.seeds + self._sweep.final_seeds)
        finalists = self._study.ranked()[: self._sweep.finalists]
        known = {one.number: one.final_scores for one in finalists if len(one.final_scores) == len(seeds)}
        self._study.keep_finals(known)
        if len(finalists) > 1 and len(known) < len(finalists):
            self._say("finals", f"trials {', '.join(str(one.number) for one in finalists)}, {len(seeds)} seeds each")
            pool, _ = self._pool()
            with pool:
                jobs = {one.number: [self._job(one, index) for index in seeds] for one in finalists}
                results = run_finals(pool, jobs, self._say)
            total = self._config.train.steps
            scores = {number: [objective_of(self._sweep, one, total) for one in own] for number, own in results.items()}
            self._study.keep_finals(scores)
            for number, own in scores.items():
                self._say(f"trial {number}", f"finals: {sum(own) / len(own):.6g}")

    def _pool(self) -> tuple[Pool, int]:
        """A pool with its number of slots; every run gets its share of the cores."""
        backend, cores = self._backend()
        slots = self._sweep.parallel or cores
        self._threads = max(1, cores // slots)
        return Pool(backend, slots, self._sweep.patience_s), slots

    def _about(self, trials: list[Trial]) -> str:
        states = [one.state for one in trials]
        counts = {"complete": "finished", "pruned": "pruned", "fail": "failed", "running": "to be continued"}
        return ", ".join(f"{states.count(state)} {text}" for state, text in counts.items() if state in states)

    def _backend(self) -> tuple[Backend, int]:
        if self._sweep.backend == "local":
            return LocalBackend(), available_cores()
        from surefoot.jobs.ray import RayBackend

        backend = RayBackend(self._sweep.address)
        try:
            backend.check_directory(self._path)
        except BaseException:
            backend.close()
            raise
        return backend, backend.cores

    def _fill(self, pool: Pool, slots: int) -> None:
        """Begin trials while there are free slots: later ones know more results."""
        while sum(len(one.runs) - len(one.results) for one in self._active.values()) < slots:
            begun = len(self._study.trials())
            if begun >= self._sweep.num_trials:
                return
            self._submit(pool, self._study.begin(self._wanted(begun)))

    def _wanted(self, ordinal: int) -> Raw:
        """Values that the sampler does not choose: a point of the grid, or the config's own for the first trial."""
        if self._sweep.sampler == "grid":
            return self._sweep.grid_point(ordinal)
        if ordinal > 0 or not self._sweep.baseline:
            return {}
        own = {key: value_of(self._config, key) for key in self._sweep.tunables}
        return {key: value for key, value in own.items() if _holds(self._sweep.tunables[key], value)}

    def _refuse_lost(self, trial: Trial) -> None:
        """Refuse to start a trial again whose runs were deleted: its evaluations say that all of them had begun."""
        runs = [self._directory(trial.number, index) for index in range(self._sweep.seeds)]
        lost = [run for run in runs if trial.evaluations and not RunDirectory(run).has_begun]
        if lost:
            raise SweepError(
                f"trial {trial.number} has evaluations in {self._path / DATABASE}, but {lost[0]} has no run; restore"
                " it, or choose another --run-dir for a new sweep"
            )

    def _submit(self, pool: Pool, trial: Trial) -> None:
        self._say(f"trial {trial.number}", _shown(trial.values))
        try:
            jobs = [self._job(trial, index) for index in range(self._sweep.seeds)]
        except ConfigError as error:  # values that contradict each other
            self._fail(trial.number, "; ".join(error.problems))
            return
        self._active[trial.number] = _Active(trial, {job.name: [] for job in jobs})
        for job in jobs:
            pool.submit(job)

    def _job(self, trial: Trial, index: int) -> Job:
        """The run of a trial with one of the seeds."""
        objective, train = self._sweep.objective, self._config.train
        own: Raw = {"train.seed": train.seed + index, "train.best_metric": objective.metric}
        threads = train.threads or self._threads
        own |= {"train.threads": threads, "rollout.workers": self._config.rollout.workers or threads}
        config = rebuilt(self._config, trial.values, own)
        arguments = {
            "directory": str(self._directory(trial.number, index).resolve()),
            "config": config.model_dump(mode="json"),
            "episodes": self._sweep.episodes,
            "target": None if objective.time_to is None else objective.time_to.score,
        }
        name = f"trial {trial.number}" + f" seed {index}" * (not self._is_only(index))
        return Job(name, "surefoot.sweep.trial:train_trial", arguments, threads)

    def _directory(self, number: int, index: int) -> Path:
        """The run directory of a trial with one of the seeds."""
        directory = self._path / ("finals" if index >= self._sweep.seeds else "trials") / f"{number:04d}"
        return directory if self._is_only(index) else directory / f"seed-{index}"

    def _is_only(self, index: int) -> bool:
        return self._sweep.seeds == 1 and index == 0

    def _handle(self, pool: Pool, event: Event) -> None:
        number = int(event.job.name.split()[1])
        active = self._active[number]
        if event.progress is not None:
            active.runs[event.job.name] = event.progress["evaluations"]
            self._report(pool, active)
        elif event.death:
            active.deaths += 1
            self._say(event.job.name, f"{event.death}; started again")
            if active.deaths >= MOST_DEATHS:  # the pool counts only deaths without progress in between
                self._end(pool, active)
                self._fail(number, f"its runs died {active.deaths} times, at last: {event.death}")
        elif event.error is not None:
            self._end(pool, active)
            self._fail(number, str(event.error).removeprefix(f"{event.job.name}: "))
        else:
            active.results[event.job.name] = event.result
            active.runs[event.job.name] = event.result["evaluations"]
            self._report(pool, active)
            if len(active.results) == len(active.runs) and number in self._active:
                self._complete(active)

    def _report(self, pool: Pool, active: _Active) -> None:
        """Record evaluations that all runs of a trial have reached, and stop the trial if it is bad."""
        number = active.trial.number
        rounds = list(zip(*active.runs.values(), strict=False))
        for one in rounds[active.reported :]:
            step, mean = int(one[0][0]), sum(score for _, _, score in one) / len(one)
            self._study.report(number, step, mean)
            self._say(f"trial {number}", f"step {step:,}: {self._sweep.objective.metric} {mean:.4g}")
        is_new, active.reported = len(rounds) > active.reported, max(active.reported, len(rounds))
        if is_new and len(active.results) < len(active.runs) and self._study.should_prune(number):
            self._end(pool, active)
            self._study.prune(number)
            self._say(f"trial {number}", "pruned")

    def _end(self, pool: Pool, active: _Active) -> None:
        del self._active[active.trial.number]
        for name in active.runs:
            pool.stop(name)

    def _complete(self, active: _Active) -> None:
        number, results = active.trial.number, list(active.results.values())
        scores = [objective_of(self._sweep, one, self._config.train.steps) for one in results]
        value = sum(scores) / len(scores)
        steps, seconds = sum(one["steps"] for one in results), sum(one["seconds"] for one in results)
        self._study.complete(number, value, scores, steps, seconds)
        del self._active[number]
        best = self._study.ranked()[0]
        self._say(f"trial {number}", f"finished: {value:.6g} (best: {best.objective:.6g}, trial {best.number})")

    def _fail(self, number: int, error: str) -> None:
        self._study.fail(number, error)
        self._say(f"trial {number}", f"failed: {error}")

    def _conclude(self) -> Trial:
        best = self._study.best()
        if best is None:
            failed = [one for one in self._study.trials() if one.error]
            last = f", at last trial {failed[-1].number}: {failed[-1].error}" if failed else ""
            raise SweepError(f"all trials of the sweep failed{last}")
        config = rebuilt(self._config, best.values)
        write_settings(self._path / BEST, config.model_dump(mode="json"))
        return best

    def _say(self, who: str, what: str) -> None:
        print(f"{who:10s} {what}", flush=True)


def objective_of(sweep: SweepConfig, result: dict[str, Any], total: int) -> float:
    """The last score of a run, or the steps or seconds until a score is reached."""
    wanted, evaluations = sweep.objective.time_to, result["evaluations"]
    if wanted is None:
        return float(evaluations[-1][2])
    reached = [one for one in evaluations if one[2] >= wanted.score]
    if wanted.unit == "steps":
        return float(reached[0][0]) if reached else float(NEVER * total)
    return float(reached[0][1]) if reached else NEVER * float(result["seconds"])


def value_of(config: Config, key: str) -> Any:
    """A setting by its dotted name; None if there is none."""
    found: Any = config.model_dump(mode="json")
    for word in key.split("."):
        found = found.get(word) if isinstance(found, dict) else None
    return found


def _holds(values: Range, own: Any) -> bool:
    if values.choices:
        return own in values.choices
    assert values.low is not None
    assert values.high is not None
    return isinstance(own, int | float) and values.low <= own <= values.high


def _shown(values: Raw) -> str:
    return ", ".join(
        f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
    )
