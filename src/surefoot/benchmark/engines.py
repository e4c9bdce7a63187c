"""`bench rollout`: compares the engines on rollouts, and the native engine with its limit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from surefoot.benchmark.cells import (
    FAILED,
    NOISE_NOTE,
    decimals,
    failures,
    megabytes,
    share,
    spread_to_json,
    subject_to_json,
    times,
)
from surefoot.benchmark.report import MISSING, Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Rounds, Say, Spread, measure, ratio
from surefoot.benchmark.subject import Plan, run_recipe
from surefoot.benchmark.subject_process import SubjectError
from surefoot.settings.config import Config
from surefoot.settings.layers import rebuilt

REFERENCE, NATIVE, LIMIT = "local", "native", "limit"


@dataclass(frozen=True)
class Contest:
    """The engines to compare, and additional numbers of threads for the native engine."""

    engines: Sequence[str]
    threads: Sequence[int] = ()


def with_engine(config: Config, engine: str, workers: int | None = None) -> Config:
    """The same config with another engine."""
    changes = {} if workers is None else {"rollout.workers": workers}
    return rebuilt(config, {"rollout.engine": engine, **changes})


def bench_rollout(config: Config, contest: Contest, effort: Effort, say: Say) -> Report:
    """Measure every engine with interleaved repeats; the row of an engine that cannot run this env shows the reason."""
    rounds = measure(_plans(config, contest), effort, say)
    subjects = in_order(rounds.subjects)
    if all(subject.has_failed for subject in subjects):
        raise SubjectError("; ".join(dict.fromkeys(failures(subjects))))
    rollout = config.rollout
    title = f"Rollouts of {config.env.id}, {rollout.num_envs} envs x {rollout.num_steps} steps"
    columns = ["engine", "steps/s", "ms per rollout", f"times {REFERENCE}", "of the limit", "peak MB"]
    table = Table(title, columns, [_row(subject, subjects) for subject in subjects])
    return Report("rollout", title, [table], _notes(subjects), _results(config, effort, rounds, subjects), rounds.load)


def _plans(config: Config, contest: Contest) -> list[Plan]:
    """The limit comes right after the native engine, so that both are measured close in time."""
    torch_threads = config.train.threads or None
    plans = []
    for engine in sorted(contest.engines, key=lambda name: name != NATIVE):
        plans.append(Plan(engine, run_recipe("collecting", with_engine(config, engine)), torch_threads))
        if engine == NATIVE:
            plans.append(Plan(LIMIT, run_recipe("limit", with_engine(config, NATIVE, workers=0)), torch_threads))
            for count in contest.threads:
                one = with_engine(config, NATIVE, workers=count)
                plans.append(Plan(threads_name(count), run_recipe("collecting", one), torch_threads))
    return plans


def threads_name(count: int) -> str:
    """The name in tables."""
    return f"{NATIVE}, {count} thread{'s' if count > 1 else ''}"


def in_order(subjects: Sequence[Measured]) -> list[Measured]:
    """The engine that `auto` selects comes first; an unavailable native engine comes last, without a limit."""
    native = _named(subjects, NATIVE)
    if native is None or not native.has_failed:
        return list(subjects)
    others = [subject for subject in subjects if not subject.name.startswith((NATIVE, LIMIT))]
    return [*others, native]


def against(subject: Measured, name: str, subjects: Sequence[Measured]) -> Spread | None:
    """The ratio to another subject per round, if both ran."""
    other = _named(subjects, name)
    if other is None or other is subject or other.has_failed or subject.has_failed:
        return None
    return ratio(subject.values("rollout_steps_per_s"), other.values("rollout_steps_per_s"))


def _named(subjects: Sequence[Measured], name: str) -> Measured | None:
    return next((subject for subject in subjects if subject.name == name), None)


def _row(subject: Measured, subjects: Sequence[Measured]) -> list[str]:
    if subject.has_failed:
        return [subject.name, FAILED, *[MISSING] * 4]
    rollout = subject.spread("rollout_ms")
    rates = [subject.spread("steps_per_s").with_noise(), rollout.with_noise(decimals(rollout.median))]
    times_reference = "1" if subject.name == REFERENCE else times(against(subject, REFERENCE, subjects))
    of_limit = "100%" if subject.name == LIMIT else share(against(subject, LIMIT, subjects))
    return [subject.name, *rates, times_reference, of_limit, megabytes(subject.peak_ram)]


def _notes(subjects: Sequence[Measured]) -> list[str]:
    notes = [f"Rollouts only, no learning. {NOISE_NOTE} RAM is the total of all processes of an engine."]
    limit = _named(subjects, LIMIT)
    if limit is not None and not limit.has_failed:
        notes.append(
            "The limit is only the dynamics on all cores: the actions and resets of rollouts that the native engine"
            " collected, replayed from the same states, without inference, noise, rewards or observations."
        )
    for few, many, found in thread_ratios(subjects):
        fewer, more = (subject.name.removeprefix(f"{NATIVE}, ") for subject in (few, many))
        notes.append(f"From {fewer} to {more}: {times(found)}.")
    return notes + failures(subjects)


def thread_ratios(subjects: Sequence[Measured]) -> list[tuple[Measured, Measured, Spread]]:
    """Speed-ups from more threads, relative to the first number of threads."""
    counted = [one for one in subjects if one.name.startswith(f"{NATIVE}, ") and not one.has_failed]
    pairs = [(counted[0], more, against(more, counted[0].name, counted)) for more in counted[1:]]
    return [(first, more, found) for first, more, found in pairs if found is not None]


def _results(config: Config, effort: Effort, rounds: Rounds, subjects: Sequence[Measured]) -> dict[str, Any]:
    return {
        "config": config.model_dump(mode="json"),
        "effort": asdict(effort),
        "order": rounds.order,
        "subjects": [
            {
                **subject_to_json(subject),
                f"ratio_to_{REFERENCE}": spread_to_json(against(subject, REFERENCE, subjects)),
                f"ratio_to_{LIMIT}": spread_to_json(against(subject, LIMIT, subjects)),
            }
            for subject in subjects
        ],
        "thread_ratios": [
            {"from": fewer.name, "to": more.name, **found.to_json()} for fewer, more, found in thread_ratios(subjects)
        ],
    }
