"""`bench scaling`: speed and RAM for different numbers of envs, with a recommendation."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from surefoot.benchmark.cells import (
    FAILED,
    NOISE_NOTE,
    decimals,
    failures,
    megabytes,
    spread_to_json,
    subject_to_json,
)
from surefoot.benchmark.engines import with_engine
from surefoot.benchmark.report import MISSING, Report, Table
from surefoot.benchmark.rounds import Effort, Measured, Rounds, Say, Spread, measure, ratio
from surefoot.benchmark.subject import Plan, run_recipe
from surefoot.benchmark.subject_process import SubjectError
from surefoot.settings.config import Config, nearest_divisor
from surefoot.settings.layers import rebuilt

NOISE = 0.05
"""Medians closer than this count as equal even if their ranges do not overlap: three repeats do not show all noise."""


@dataclass(frozen=True)
class Point:
    """One number of envs with one engine; speed-ups are relative to the first number with the same engine."""

    engine: str
    num_envs: int
    batch_size: int
    measured: Measured
    speedup: Spread | None
    efficiency: float | None
    """Speed-up of the rollout, divided by the increase in the number of envs."""
    step_cost: Spread | None
    """Cost of a rollout step, relative to the first number of envs."""

    @property
    def name(self) -> str:
        """The point as text."""
        return f"{self.num_envs} envs, engine {self.engine}"

    @property
    def deviation(self) -> float:
        """Relative change of the cost of a step, compared with the first number of envs."""
        return 0.0 if self.step_cost is None else self.step_cost.median - 1


def with_num_envs(config: Config, num_envs: int) -> Config:
    """The same config with another number of envs and the same number of minibatches, or the nearest divisor."""
    size = num_envs * config.rollout.num_steps
    num_minibatches = config.rollout.size / config.ppo.batch_size
    batch_size = nearest_divisor(size, max(1, round(size / num_minibatches)))
    changes: dict[str, Any] = {"rollout.num_envs": num_envs, "ppo.batch_size": batch_size}
    micro = config.ppo.micro_batch_size
    if micro is not None:
        changes["ppo.micro_batch_size"] = min(micro, batch_size)
    return rebuilt(config, changes)


@dataclass(frozen=True)
class Sweep:
    """Every number of envs with every engine; `only_rollout` excludes learning."""

    sizes: Sequence[int]
    engines: Sequence[str]
    only_rollout: bool = False


def bench_scaling(config: Config, sweep: Sweep, effort: Effort, say: Say) -> Report:
    """Measure every number of envs with every engine, with interleaved repeats."""
    configs = [with_num_envs(with_engine(config, engine), size) for engine in sweep.engines for size in sweep.sizes]
    threads, kind = config.train.threads or None, "collecting" if sweep.only_rollout else "training"
    plans = [
        Plan(f"{one.rollout.num_envs} envs, {one.rollout.engine.kind}", run_recipe(kind, one), threads)
        for one in configs
    ]
    rounds = measure(plans, effort, say)
    points = _points(configs, rounds)
    if all(point.measured.has_failed for point in points):
        raise SubjectError("; ".join(failures(rounds.subjects)))
    best = recommend([point for point in points if not point.measured.has_failed])
    results = {
        "config": config.model_dump(mode="json"),
        "only_rollout": sweep.only_rollout,
        "effort": asdict(effort),
        "order": rounds.order,
        "points": [_to_json(point) for point in points],
        "step_cost_deviation": {name: point.deviation for name, point in farthest(points).items()},
        "recommended": {"num_envs": best.point.num_envs, "engine": best.point.engine, "because": best.reason},
    }
    title = f"Scaling of {config.env.id}, {config.rollout.num_steps} steps, " + (
        "rollout only" if sweep.only_rollout else f"{config.ppo.epochs} epochs"
    )
    kept = [_kept_collecting(config)] if sweep.only_rollout else _kept(config, configs)
    notes = [*kept, *_flatness(points), *failures(rounds.subjects), best.words]
    table = _rollout_table(title, points) if sweep.only_rollout else _table(title, points)
    return Report("scaling", title, [table], notes, results, rounds.load)


@dataclass(frozen=True)
class Recommendation:
    """The recommended point, and the reason."""

    point: Point
    reason: str

    @property
    def words(self) -> str:
        """The recommendation as text, with its settings."""
        return (
            f"Recommended: {self.point.name} ({self.reason}):"
            f" --rollout.num_envs {self.point.num_envs} --rollout.engine {self.point.engine}"
            f" --ppo.batch_size {self.point.batch_size}"
        )


def recommend(points: Sequence[Point]) -> Recommendation:
    """The fastest point; among those that are equally fast within the noise, the one with the least RAM."""
    fastest = max(points, key=lambda point: point.measured.spread("steps_per_s").median)
    best = fastest.measured.spread("steps_per_s")
    ties = [point for point in points if is_tie(point.measured.spread("steps_per_s"), best)]
    if len(ties) == 1:
        return Recommendation(fastest, f"fastest, {best.median:,.0f} steps/s")
    smallest = min(ties, key=lambda point: (point.measured.peak_ram or 0, point.num_envs))
    names = " and ".join(point.name for point in ties)
    return Recommendation(smallest, f"{names} are equally fast within the noise, and it uses the least RAM")


def is_tie(one: Spread, best: Spread) -> bool:
    """Whether a rate equals the best one within the noise."""
    return one.high >= best.low or one.median >= (1 - NOISE) * best.median


def farthest(points: Sequence[Point]) -> dict[str, Point]:
    """By engine, the point whose cost per step deviates most from that with the first number of envs."""
    ran = [point for point in points if point.step_cost is not None]
    return {
        engine: max((point for point in ran if point.engine == engine), key=lambda point: abs(point.deviation))
        for engine in dict.fromkeys(point.engine for point in ran)
    }


def _points(configs: Sequence[Config], rounds: Rounds) -> list[Point]:
    firsts: dict[str, tuple[int, Measured]] = {}
    points = []
    for config, measured in zip(configs, rounds.subjects, strict=True):
        engine = measured.engine or config.rollout.engine.kind
        if not measured.has_failed:
            firsts.setdefault(config.rollout.engine.kind, (config.rollout.num_envs, measured))
        points.append(_point(engine, config, measured, firsts.get(config.rollout.engine.kind)))
    return points


def _point(engine: str, config: Config, measured: Measured, first: tuple[int, Measured] | None) -> Point:
    num_envs, batch_size = config.rollout.num_envs, config.ppo.batch_size
    if first is None or measured.has_failed:
        return Point(engine, num_envs, batch_size, measured, None, None, None)
    first_envs, reference = first
    speedup = ratio(measured.values("steps_per_s"), reference.values("steps_per_s"))
    rollout = ratio(measured.values("rollout_steps_per_s"), reference.values("rollout_steps_per_s"))
    step_cost = ratio(measured.values("step_us"), reference.values("step_us"))
    return Point(engine, num_envs, batch_size, measured, speedup, rollout.median / (num_envs / first_envs), step_cost)


def _table(title: str, points: Sequence[Point]) -> Table:
    columns = ["envs", "engine", "steps/s", "rollout ms", "learn ms", "speed-up", "efficiency", "peak MB"]
    return Table(title, columns, [_row(point) for point in points])


def _rollout_table(title: str, points: Sequence[Point]) -> Table:
    columns = ["envs", "engine", "steps/s", "rollout ms", "us per step", "relative cost", "peak MB"]
    rows = []
    for point in points:
        cells = [str(point.num_envs), point.engine]
        if point.step_cost is None:
            rows.append([*cells, FAILED, *[MISSING] * 4])
            continue
        rate, rollout, step = (point.measured.spread(what) for what in ("steps_per_s", "rollout_ms", "step_us"))
        cells += [rate.with_noise(), *(format(one.median, decimals(one.median)) for one in (rollout, step))]
        rows.append([*cells, point.step_cost.with_range(".2f"), megabytes(point.measured.peak_ram)])
    return Table(title, columns, rows)


def _flatness(points: Sequence[Point]) -> list[str]:
    """The largest deviation of the cost per step, if there are several numbers of envs."""
    notes = []
    for engine, point in farthest(points).items():
        ran = [one for one in points if one.engine == engine and one.step_cost is not None]
        if len(ran) > 1:
            notes.append(
                f"Engine {engine}: the cost per rollout step deviates most from that with {ran[0].num_envs} envs at"
                f" {point.num_envs} envs: {point.deviation:+.1%}."
            )
    return notes


def _row(point: Point) -> list[str]:
    measured = point.measured
    if measured.has_failed or point.speedup is None or point.efficiency is None:
        return [str(point.num_envs), point.engine, FAILED, *[MISSING] * 5]
    return [
        *(str(point.num_envs), point.engine, measured.spread("steps_per_s").with_noise()),
        *(format(phase.median, decimals(phase.median)) for phase in map(measured.spread, ("rollout_ms", "learn_ms"))),
        *(f"{point.speedup.median:.2f}", f"{point.efficiency:.0%}", megabytes(measured.peak_ram)),
    ]


def _kept_collecting(config: Config) -> str:
    return (
        f"Rollouts only, no learning, {config.rollout.num_steps} steps per env, so the rollout grows with the number of"
        f" envs. {NOISE_NOTE} The cost per step is wall-clock time divided by the steps of all envs; the relative cost"
        " compares it with the first number of envs, per round."
    )


def _kept(config: Config, configs: Sequence[Config]) -> list[str]:
    """The settings that stay constant while the number of envs changes."""
    wanted = config.rollout.size / config.ppo.batch_size
    off = {
        str(one.rollout.num_envs): one.rollout.size // one.ppo.batch_size
        for one in configs
        if one.rollout.size != wanted * one.ppo.batch_size
    }
    note = (
        f"Kept constant: steps per env ({config.rollout.num_steps}), minibatches ({wanted:g}) and epochs"
        f" ({config.ppo.epochs}), so the rollout and the batch size grow with the number of envs. Only executed steps"
        f" count; milliseconds are per iteration. {NOISE_NOTE} Efficiency is the speed-up of the rollout divided by the"
        " increase in the number of envs."
    )
    if not off:
        return [note]
    others = ", ".join(f"{minibatches} with {envs} envs" for envs, minibatches in off.items())
    return [note, f"If that number of minibatches does not divide the rollout, the nearest divisor is used: {others}."]


def _to_json(point: Point) -> dict[str, Any]:
    return {
        **{"num_envs": point.num_envs, "batch_size": point.batch_size},
        **{"speedup": spread_to_json(point.speedup), "step_cost": spread_to_json(point.step_cost)},
        **{"rollout_efficiency": point.efficiency, **subject_to_json(point.measured)},
        "engine": point.engine,
    }
