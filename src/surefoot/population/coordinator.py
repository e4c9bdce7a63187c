"""Runs a population round by round; killed at any moment, it continues from what is on the disk."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from surefoot.compose import build_env
from surefoot.errors import PopulationError
from surefoot.evaluation.evaluation import check_best_metric
from surefoot.jobs.job import Backend, Job
from surefoot.jobs.local import InlineBackend, LocalBackend
from surefoot.jobs.pool import Event, Pool
from surefoot.machine.cores import available_cores
from surefoot.philox import Stream, derived_seed
from surefoot.population.continuity import check_continuity, check_states, check_values, restore_best
from surefoot.population.decisions import Choice, choose, ranked, start_values
from surefoot.population.files import PopulationFiles, copy_atomically
from surefoot.population.log import Entry, Outcome, PopulationLog, parsed
from surefoot.population.member import Task
from surefoot.population.settings import HOW, NAME, Plan
from surefoot.settings.layers import read_yaml
from surefoot.storage.files import read_regular
from surefoot.storage.folder_lock import locked, unwritable
from surefoot.storage.run_folder import POPULATION, refuse_other_kind
from surefoot.training.checkpoint import write_atomically

TASK = "surefoot.population.member:train_round"


class Watcher(Protocol):
    """Sees what happens."""

    def begin_round(self, number: int, choices: Sequence[Choice]) -> None:
        """A round begins; members continue from their parents, with their values."""

    def progress(self, member: int, said: dict[str, Any]) -> None:
        """A member trains."""

    def died(self, member: int, why: str) -> None:
        """The process of a member died and is started again."""

    def finished(self, member: int, outcome: Outcome) -> None:
        """A member has finished its round."""

    def decided(self, entries: Sequence[Entry]) -> None:
        """A round is over."""


def run_population(folder: Path, plan: Plan, watcher: Watcher) -> list[Entry]:
    """Train a population to the end, or continue it; returns the entries of its last round."""
    files = PopulationFiles(folder)
    with closing(build_env(plan.config, rows=1)) as env:  # before anything starts
        check_best_metric(plan.population.objective, env.metrics, f"{NAME}.objective")
    try:
        with locked(folder, "population in"):
            files.members.mkdir(exist_ok=True)
            _write_plan(files, plan)
            backend, slots = _backend(plan, folder)
            with Pool(backend, slots, plan.population.patience_s) as pool:
                return _Rounds(files, plan, pool, watcher).run()
    except OSError as error:
        raise unwritable(folder, error) from error


class _Rounds:
    def __init__(self, files: PopulationFiles, plan: Plan, pool: Pool, watcher: Watcher) -> None:
        self._files, self._plan, self._pool, self._watcher = files, plan, pool, watcher
        self._log = PopulationLog(files.log, plan.population.members)
        self._members = [files.member(member) for member in range(plan.population.members)]
        self._has_trained = False

    def run(self) -> list[Entry]:
        """All rounds that are not in the log yet."""
        rounds = self._log.read()
        check_values(rounds, self._plan, self._files.log)
        if not (rounds and self._is_over(rounds[-1])):
            check_continuity(rounds, self._members, self._files)
            restore_best(rounds, self._members, self._files.best)
        while not (rounds and self._is_over(rounds[-1])):
            number = len(rounds) + 1
            outcomes = self._train(number, rounds[-1] if rounds else None)
            entries = self._decide(number, outcomes, rounds)
            self._log.append(entries)
            rounds.append(entries)
            for files in self._members:
                files.forget(number - 1)
            self._watcher.decided(entries)
        restore_best(rounds, self._members, self._files.best)
        return rounds[-1]

    def _is_over(self, entries: Sequence[Entry]) -> bool:
        total = self._plan.config.train.steps
        return all(entry.step >= total for entry in entries if not entry.has_failed)

    def _train(self, number: int, last: Sequence[Entry] | None) -> list[Outcome]:
        """The outcomes of a round; those that an earlier coordinator has seen are on the disk."""
        outcomes: dict[int, Outcome] = {}
        choices = self._choices(last)
        if not self._has_trained and not all(files.outcome(number).is_file() for files in self._members):
            check_states(number, last or (), self._members)
            self._has_trained = True
        self._watcher.begin_round(number, choices)
        for member, choice in enumerate(choices):
            file = self._members[member].outcome(number)
            if file.is_file():
                outcomes[member] = _outcome(file)
                self._watcher.finished(member, outcomes[member])
            else:
                self._pool.submit(self._job(number, member, choice, last))
        for event in self._pool.events():
            member = int(event.job.arguments["member"])
            if event.is_last:
                outcomes[member] = self._keep(number, member, event)
            elif event.death:
                self._watcher.died(member, event.death)
            else:
                self._watcher.progress(member, event.progress or {})
        return [outcomes[member] for member in range(len(choices))]

    def _keep(self, number: int, member: int, event: Event) -> Outcome:
        outcome = Outcome.failed(str(event.error)) if event.error is not None else Outcome(**event.result, error="")
        file = self._members[member].outcome(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(asdict(outcome)).encode())
        self._watcher.finished(member, outcome)
        return outcome

    def _choices(self, last: Sequence[Entry] | None) -> list[Choice]:
        if last is None:
            return [Choice(member, start_values(self._plan, member)) for member in range(len(self._members))]
        return [Choice(entry.parent, entry.next_values) for entry in last]

    def _job(self, number: int, member: int, choice: Choice, last: Sequence[Entry] | None) -> Job:
        population = self._plan.population
        task = Task(
            folder=str(self._files.path.resolve()),
            member=member,
            round=number,
            iteration=number * population.iterations,
            config=self._plan.member_config(member, choice.values).model_dump(mode="json"),
            tunables=self._plan.names,
            parent=None if last is None else choice.parent,
            has_own=last is not None and not last[member].has_failed,
            optimizer=population.optimizer,
            episodes=population.episodes,
            # The same episodes for all members, so that they differ only in their policies.
            seed=derived_seed(population.seed, 0, Stream.POPULATION_EVALUATION, number),
        )
        return Job(f"member {member:02d}", TASK, task.to_json(), self._plan.threads)

    def _decide(self, number: int, outcomes: Sequence[Outcome], rounds: Sequence[Sequence[Entry]]) -> list[Entry]:
        failed = [bool(outcome.error) for outcome in outcomes]
        if all(failed):
            for files in self._members:  # the same command tries again
                files.outcome(number).unlink(missing_ok=True)
            raise PopulationError(f"all members failed in round {number}; the first error: {outcomes[0].error}")
        order = ranked([outcome.score for outcome in outcomes], failed)
        self._keep_best(number, order[0], outcomes[order[0]].score, rounds)
        values = [choice.values for choice in self._choices(rounds[-1] if rounds else None)]
        is_over = all(outcome.is_done for outcome in outcomes if not outcome.error)
        choices = (
            [Choice(member, values[member]) for member in range(len(values))]
            if is_over
            else choose(self._plan, number, values, order, failed)
        )
        return [
            Entry(
                round=number,
                member=member,
                score=outcome.score,
                interval=outcome.interval,
                hash=outcome.hash,
                step=outcome.step,
                values=values[member],
                used=outcome.used,
                parent=choice.parent,
                next_values=choice.values,
                error=outcome.error,
            )
            for member, (outcome, choice) in enumerate(zip(outcomes, choices, strict=True))
        ]

    def _keep_best(self, number: int, member: int, score: float | None, rounds: Sequence[Sequence[Entry]]) -> None:
        earlier = [entry.score for entries in rounds for entry in entries if entry.score is not None]
        is_kept = not self._members[member].checkpoint(number).exists()  # of a round that is decided again
        if score is not None and all(score >= one for one in earlier) and not is_kept:
            copy_atomically(self._members[member].checkpoint(number), self._files.best)


def _outcome(file: Path) -> Outcome:
    try:
        return parsed(Outcome, read_regular(file))
    except ValueError as error:
        raise PopulationError(
            f"{file} is damaged ({error}); remove it and resume: the evaluation of the member is repeated, if its state"
            " at the end of the round is still there"
        ) from error


def _write_plan(files: PopulationFiles, plan: Plan) -> None:
    """Refuse to mix two populations; how it runs may differ."""
    refuse_other_kind(files.path, POPULATION)
    wanted = plan.to_json()
    if files.config.exists():
        saved = read_yaml(files.config)
        changed = [name for name in _differences(saved, wanted) if name not in {f"{NAME}.{key}" for key in HOW}]
        if changed:
            raise PopulationError(
                f"{files.path} holds a population with another {', '.join(changed)}; use the same settings, continue it"
                f" with 'surefoot population resume {files.path}', or choose another --run-dir"
            )
    elif files.log.exists() or files.best.exists() or any(files.members.iterdir()):
        raise PopulationError(
            f"{files.path} holds a population without its {files.config.name}; restore it, or choose another --run-dir"
        )
    files.write_config(wanted)


def _differences(saved: Any, wanted: Any, path: str = "") -> list[str]:
    if not (isinstance(saved, dict) and isinstance(wanted, dict)):
        return [] if saved == wanted else [path]
    keys = [*wanted, *(key for key in saved if key not in wanted)]
    inside = ((key, f"{path}.{key}" if path else str(key)) for key in keys)
    return [name for key, where in inside for name in _differences(saved.get(key), wanted.get(key), where)]


def _backend(plan: Plan, folder: Path) -> tuple[Backend, int]:
    """Where members train, and how many at a time: one that waits for a core would count as hung."""
    population = plan.population
    if population.backend == "inline":
        return InlineBackend(), 1
    if population.backend == "ray":
        from surefoot.jobs.ray import RayBackend

        cluster = RayBackend(population.address)
        cluster.check_directory(folder)
        return cluster, _slots(plan, cluster.cores)
    return LocalBackend(), _slots(plan, available_cores())


def _slots(plan: Plan, cores: int) -> int:
    return min(plan.population.members, plan.population.parallel or max(1, cores // plan.threads))
