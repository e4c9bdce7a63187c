"""`bench train`: a complete configured run, by phase, with the RAM of all processes."""

from dataclasses import asdict

from surefoot.benchmark.cells import megabytes, subject_to_json
from surefoot.benchmark.report import Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Say, measure, spread
from surefoot.benchmark.subject import Plan, run_recipe
from surefoot.benchmark.subject_process import SubjectError
from surefoot.settings.config import Config


def bench_train(config: Config, effort: Effort, say: Say) -> Report:
    """Measure one run in a separate process."""
    plan = Plan(
        f"{config.env.id}, {config.rollout.engine.kind}", run_recipe("training", config), config.train.threads or None
    )
    rounds = measure([plan], effort, say)
    subject = rounds.subjects[0]
    if subject.has_failed:
        raise SubjectError(f"{subject.name}: {subject.error}")
    results = {
        "config": config.model_dump(mode="json"),
        "effort": asdict(effort),
        "subjects": [subject_to_json(subject)],
    }
    named = title(config, subject.engine)
    return Report("train", f"Training {named}", [_table(named, subject)], _notes(subject), results, rounds.load)


def title(config: Config, engine: str | None) -> str:
    """The run in one line."""
    rollout, ppo = config.rollout, config.ppo
    return (
        f"{config.env.id}, {rollout.num_envs} envs x {rollout.num_steps} steps, engine {engine or rollout.engine.kind},"
        f" {ppo.epochs} epochs, batch {ppo.batch_size}"
    )


def _table(named: str, subject: Measured) -> Table:
    total_ms = [window.rollout_ms + window.learn_ms for window in subject.windows]
    rows = []
    for phase, milliseconds in (("rollout", "rollout_ms"), ("learning", "learn_ms")):
        values = subject.values(milliseconds)
        share = sum(values) / sum(total_ms)
        per_s = [
            1000 * window.steps / window.iterations / value
            for window, value in zip(subject.windows, values, strict=True)
        ]
        rows.append(
            [phase, subject.spread(milliseconds).with_range(",.1f"), f"{share:.0%}", spread(per_s).with_range()]
        )
    rows.append(["end to end", spread(total_ms).with_range(",.1f"), "100%", subject.spread("steps_per_s").with_range()])
    return Table(named, ["phase", "ms per iteration", "share", "steps/s"], rows)


def _notes(subject: Measured) -> list[str]:
    steps = sum(window.steps for window in subject.windows)
    windows, iterations = len(subject.windows), sum(window.iterations for window in subject.windows)
    return [
        f"Total peak RAM of all processes: {megabytes(subject.peak_ram)} MB.",
        f"{steps:,} executed steps in {iterations} iterations, {windows} windows; medians, with the range of windows.",
    ]
