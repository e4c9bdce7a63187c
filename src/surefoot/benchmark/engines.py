"""`bench rollout`: the engines side by side, collecting only."""

from collections.abc import Sequence

from surefoot.benchmark.cells import (
    FAILED,
    NOISE_NOTE,
    effort_to_json,
    failures,
    megabytes,
    subject_to_json,
    times,
)
from surefoot.benchmark.recipe import Plan, collecting_recipe
from surefoot.benchmark.report import MISSING, Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Say, measure
from surefoot.benchmark.spread import Spread, ratio
from surefoot.benchmark.subject_process import SubjectError
from surefoot.core.config import Config
from surefoot.core.layers import build_config

REFERENCE = "local"


def with_engine(config: Config, engine: str) -> Config:
    """The same run with another engine."""
    return build_config(config.model_dump(mode="json"), {"rollout.engine": engine})


def bench_rollout(config: Config, engines: Sequence[str], effort: Effort, say: Say) -> Report:
    """Take turns collecting with each engine; one that cannot run this env says so in its row."""
    threads = config.train.threads or None
    plans = [Plan(engine, collecting_recipe(with_engine(config, engine)), threads) for engine in engines]
    rounds = measure(plans, effort, say)
    if all(subject.has_failed for subject in rounds.subjects):
        raise SubjectError("; ".join(failures(rounds.subjects)))
    ratios = {subject.name: against(subject, rounds.subjects) for subject in rounds.subjects}
    results = {
        "config": config.model_dump(mode="json"),
        "effort": effort_to_json(effort),
        "order": rounds.order,
        "subjects": [
            {**subject_to_json(subject), f"ratio_to_{REFERENCE}": _json(ratios[subject.name])}
            for subject in rounds.subjects
        ],
    }
    rollout = config.rollout
    title = f"Rollouts of {config.env.id}, {rollout.num_envs} envs x {rollout.num_steps} steps"
    columns = ["engine", "steps/s", "ms a rollout", f"times {REFERENCE}", "peak MB"]
    rows = [_row(subject, ratios[subject.name]) for subject in rounds.subjects]
    notes = [f"Only collecting, no learning. {NOISE_NOTE} Memory is of all processes of an engine together."]
    notes += failures(rounds.subjects)
    return Report("rollout", title, [Table(title, columns, rows)], notes, results, rounds.load)


def against(subject: Measured, subjects: Sequence[Measured]) -> Spread | None:
    """The ratio to the reference engine, if both ran."""
    reference = next((other for other in subjects if other.name == REFERENCE), None)
    if reference is None or reference is subject or reference.has_failed or subject.has_failed:
        return None
    return ratio(subject.values("steps_per_s"), reference.values("steps_per_s"))


def _row(subject: Measured, ratio_to_reference: Spread | None) -> list[str]:
    if subject.has_failed:
        return [subject.name, FAILED, *[MISSING] * 3]
    rates = [subject.spread("steps_per_s").with_noise(), subject.spread("rollout_ms").with_noise(",.1f")]
    times_reference = "1" if subject.name == REFERENCE else times(ratio_to_reference)
    return [subject.name, *rates, times_reference, megabytes(subject.peak_memory)]


def _json(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else spread.to_json()
