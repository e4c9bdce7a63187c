"""`bench peers`: Surefoot beside others, same envs, hyperparameters and torch threads, in turns."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.sides import OURS, find_side, missing_packages, peers
from benchmarks.tasks import TASKS, Task
from surefoot.benchmark.cells import FAILED, NOISE_NOTE, failures, megabytes, subject_to_json, times
from surefoot.benchmark.load import summarize_load
from surefoot.benchmark.report import MISSING, Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Rounds, Say, Spread, measure, ratio
from surefoot.benchmark.subject import Plan, Recipe
from surefoot.errors import ConfigError
from surefoot.machine.extras import install_hint
from surefoot.settings.registry import nearest

RATES = {"end to end": "steps_per_s", "rollout only": "rollout_steps_per_s"}


@dataclass(frozen=True)
class Sides:
    """Who takes part: engines of ours, peers that can run here, and why others cannot."""

    engines: list[str]
    peers: list[str]
    absent: dict[str, str]

    @property
    def names(self) -> list[str]:
        """All that can run here, ours first."""
        return [*self.engines, *self.peers]

    def fitting(self, task: Task) -> list[str]:
        """Those of them that can do the same work at a task."""
        return [name for name in self.names if find_side(name).fits(task)]


@dataclass(frozen=True)
class Comparison:
    """Who does what, with how many torch threads each (0: as each does by itself)."""

    tasks: Sequence[Task]
    sides: Sides
    threads: int = 0


def choose_sides(engines: Sequence[str], others: Sequence[str]) -> Sides:
    """All known ones if none is named; a peer whose package is missing is left out with the remedy."""
    known = peers()
    refuse_unknown("--engines", engines, list(OURS))
    refuse_unknown("--peers", others, known.names())
    present, absent = [], {}
    for name in dict.fromkeys(others or known.names()):
        missing = missing_packages(known[name])
        if missing:
            absent[name] = f"{', '.join(missing)} is not installed; {install_hint('peers')}"
        else:
            present.append(name)
    return Sides(list(dict.fromkeys(engines)) or list(OURS), present, absent)


def choose_tasks(names: Sequence[str]) -> list[Task]:
    """By name; all if none is named."""
    refuse_unknown("--tasks", names, list(TASKS))
    return [TASKS[name] for name in dict.fromkeys(names or TASKS)]


def bench_peers(comparison: Comparison, effort: Effort, say: Say, keep: Callable[[Report], None]) -> Report:
    """One task after the other, all sides in turns; `keep` gets the report after each, as the next may take long."""
    for note in _absences(comparison.sides):
        say(note)
    measured: list[tuple[Task, Rounds]] = []
    for task in comparison.tasks:
        measured.append((task, _measure(task, comparison, effort, say)))
        keep(report := _report(comparison, effort, measured))
    return report


def _report(comparison: Comparison, effort: Effort, measured: Sequence[tuple[Task, Rounds]]) -> Report:
    sides, threads = comparison.sides, comparison.threads
    notes = _absences(sides)
    for task, rounds in measured:
        notes += _unfit(task, sides)
        notes += [f"{task.name}: {failure}" for failure in failures(rounds.subjects)]
    notes.append(
        f"{NOISE_NOTE} A ratio is ours over theirs, each repeat of ours by theirs of the same round: median (lowest and"
        f" highest). Torch threads of every side: {threads or 'what it uses by itself'}."
        " RAM is the highest of all processes of a side together."
    )
    results = {
        "threads": threads,
        "effort": asdict(effort),
        "tasks": [_to_json(task, rounds, sides) for task, rounds in measured],
        "absent": sides.absent,
        "failed": failed_sides(measured),
    }
    tables = [table for task, rounds in measured for table in _tables(task, rounds, sides)]
    shares = [share for _, rounds in measured for share in rounds.shares]
    load = summarize_load(measured[0][1].loadavg_before, shares)
    return Report("peers", "Surefoot beside others", tables, notes, results, load)


def failed_sides(measured: Sequence[tuple[Task, Rounds]]) -> list[str]:
    """`task: side` of all that have nothing to show."""
    return [
        f"{task.name}: {subject.name}" for task, rounds in measured for subject in rounds.subjects if subject.has_failed
    ]


def _absences(sides: Sides) -> list[str]:
    return [f"{find_side(name).title} left out: {reason}." for name, reason in sides.absent.items()]


def _unfit(task: Task, sides: Sides) -> list[str]:
    """A sentence about those who would not do the same work at a task, if there are any."""
    fitting = sides.fitting(task)
    titles = [find_side(name).title for name in sides.names if name not in fitting]
    return [f"{task.name}: not for {'; '.join(titles)}."] if titles else []


def _measure(task: Task, comparison: Comparison, effort: Effort, say: Say) -> Rounds:
    say(f"-- {task.title}")
    sides, threads = comparison.sides, comparison.threads
    for note in _unfit(task, sides):
        say(note)
    names = sides.fitting(task)
    return measure([Plan(name, side_recipe(name, task, threads), threads or None) for name in names], effort, say)


def ratios(ours: Measured, theirs: Measured) -> dict[str, Spread] | None:
    """End to end, and of the rollout alone; None if either failed."""
    if ours.has_failed or theirs.has_failed:
        return None
    return {name: ratio(ours.values(rate), theirs.values(rate)) for name, rate in RATES.items()}


def _tables(task: Task, rounds: Rounds, sides: Sides) -> list[Table]:
    columns = ["side", "steps/s", "rollout ms", "learn ms", "peak MB"]
    tables = [Table(task.title, columns, [_row(subject) for subject in rounds.subjects])]
    ours, theirs = _split(rounds, sides)
    if theirs:
        tables += [_ratio_table(f"Ours over theirs, {name}, {task.title}", name, ours, theirs) for name in RATES]
    return tables


def _ratio_table(title: str, rate: str, ours: Sequence[Measured], theirs: Sequence[Measured]) -> Table:
    columns = ["peer", *(f"{mine.name} over it" for mine in ours)]
    rows = []
    for other in theirs:
        found = [ratios(mine, other) for mine in ours]
        rows.append([find_side(other.name).title, *(times(None if both is None else both[rate]) for both in found)])
    return Table(title, columns, rows)


def _row(subject: Measured) -> list[str]:
    title = find_side(subject.name).title
    if subject.has_failed:
        return [title, FAILED, *[MISSING] * 3]
    phases = [f"{subject.spread(phase).median:,.1f}" for phase in ("rollout_ms", "learn_ms")]
    return [title, subject.spread("steps_per_s").with_noise(), *phases, megabytes(subject.peak_ram)]


def _to_json(task: Task, rounds: Rounds, sides: Sides) -> dict[str, Any]:
    ours, theirs = _split(rounds, sides)
    found = [(mine, other, ratios(mine, other)) for mine in ours for other in theirs]
    return {
        "task": {**vars(task), "batch_size": task.batch_size},
        "order": rounds.order,
        "subjects": [subject_to_json(subject) for subject in rounds.subjects],
        "ratios": [
            {"ours": mine.name, "theirs": other.name, **{_key(name): spread.to_json() for name, spread in both.items()}}
            for mine, other, both in found
            if both is not None
        ],
    }


def _split(rounds: Rounds, sides: Sides) -> tuple[list[Measured], list[Measured]]:
    ours = [subject for subject in rounds.subjects if subject.name in sides.engines]
    return ours, [subject for subject in rounds.subjects if subject.name in sides.peers]


def _key(name: str) -> str:
    return name.replace(" ", "_")


def refuse_unknown(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Name what does not exist, with the nearest that does."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(
            [f"{option}: there is no '{name}'{nearest(name, known)} (known: {', '.join(known)})" for name in unknown]
        )


def side_recipe(side: str, task: Task, threads: int) -> Recipe:
    """A side of a comparison at a task."""
    return {"kind": "benchmarks.sides", "side": side, "task": asdict(task), "threads": threads}
