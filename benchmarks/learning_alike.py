"""Implementations that learn alike: the same tasks and seeds with each, and whether the final returns overlap.

    python -m benchmarks.learning_alike [TASK ...]                      native and reference engine
    python -m benchmarks.learning_alike --compare learner [TASK ...]    native and torch's learner
    python -m benchmarks.learning_alike --compare critic [TASK ...]     scalar, quantile and twin critics

Each run is `surefoot train` in a process of its own, then `surefoot evaluate` of the final policy. Results and curves
go to benchmarks/results/learning_alike/. Every finished run is kept there, and a later call continues with those that
are missing; `--again` starts over.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept_runs import KeptRuns, Run
from benchmarks.learning import curve_of, surefoot
from surefoot.benchmark.report import machine
from surefoot.statistics.aggregates import aggregate

RESULTS = Path(__file__).parent / "results" / "learning_alike"
SEEDS = 5
EPISODES = 20
COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:purple")


@dataclass(frozen=True)
class Task:
    """A preset or env, how long, what a policy that has not learned reaches at most, and other settings."""

    name: str
    steps: int
    untrained: float
    target: str = ""
    """What is trained, if it is not called like the task."""
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Settings by the names of the sides."""

    name: str
    sides: dict[str, tuple[str, ...]]
    tasks: tuple[Task, ...]
    folder: str = ""
    seeds: int = SEEDS


def values_of(setting: str, *values: str) -> dict[str, tuple[str, ...]]:
    """Sides that are values of one setting."""
    return {value: (f"--{setting}", value) for value in values}


COMPARISONS = {
    "engine": Comparison(
        "engine",
        values_of("rollout.engine", "native", "local"),
        (
            Task("CartPole-v1", 60_000, 60),
            Task("Pendulum-v1", 100_000, -900),
            Task("cheetah-minute", 300_000, 100),
        ),
    ),
    "learner": Comparison(
        "learner",
        values_of("train.learner", "native", "torch"),
        (
            Task("CartPole-v1", 60_000, 60),
            Task("Pendulum-v1", 100_000, -900),
            Task("HalfCheetah-v5", 300_000, 100),
            Task("cheetah-minute", 300_000, 100),
            Task("CartPoleNoVel-v1-lstm", 50_000, 60, "CartPoleNoVel-v1"),
            Task("CartPoleNoVel-v1-gru", 50_000, 60, "CartPoleNoVel-v1", ("--policy.memory", "gru")),
            Task("Pendulum-v1-beta", 100_000, -900, "Pendulum-v1", ("--policy.distribution", "beta")),
            Task("MaskedChoice-v0", 100_000, 30, "benchmarks.masked_choice:MaskedChoice-v0"),
        ),
        "learner",
    ),
    "critic": Comparison(
        "critic",
        values_of("policy.critic", "scalar", "quantile", "twin")
        | {"twin quantile": ("--policy.critic", "twin", "--policy.critic.of", "quantile")},
        (Task("cheetah-minute", 300_000, 100), Task("Hopper-v5", 300_000, 200)),
        "critic",
        seeds=3,
    ),
}


def run(comparison: Comparison, task: Task, side: str, seed: int) -> Run:
    """Train one seed with one side and evaluate its final policy."""
    fixed = ["--log.console", "off", "--train.eval_episodes", "0", "--train.eval_every", "0", "--train.threads", "1"]
    settings = [*comparison.sides[side], "--steps", str(task.steps), "--seed", str(seed), *fixed]
    with tempfile.TemporaryDirectory() as folder:
        surefoot("train", task.target or task.name, "--run-dir", folder, *settings, *task.settings)
        scored = json.loads(surefoot("evaluate", folder, "--episodes", str(EPISODES), "--seed", "1000", "--json"))
        curve = curve_of(Path(folder))
    print(f"{task.name} {side} seed {seed}: {scored['mean_reward']:.1f}, {curve[-1][2]:.1f} s", flush=True)
    return {
        comparison.name: side,
        "seed": seed,
        "mean_reward": scored["mean_reward"],
        "curve": curve,
    }


def judge(comparison: Comparison, task: Task, runs: Sequence[Run]) -> dict[str, Any]:
    """What the runs say: mean and interval per side, whether they overlap, and whether both have learned at all."""
    by_side = {side: [one for one in runs if one[comparison.name] == side] for side in comparison.sides}
    scores = {side: [one["mean_reward"] for one in own] for side, own in by_side.items() if own}
    intervals = {side: tuple(aggregate([values]).mean[1:]) for side, values in scores.items()}
    overlap = max(low for low, _ in intervals.values()) <= min(high for _, high in intervals.values())
    return {
        "scores": scores,
        "means": {side: statistics.fmean(values) for side, values in scores.items()},
        "intervals": intervals,
        "overlap": overlap if len(scores) == len(comparison.sides) else None,
        "learned": all(bool(np.median(values) > task.untrained) for values in scores.values()),
        "seconds": {side: statistics.median(one["curve"][-1][2] for one in by_side[side]) for side in scores},
    }


def plot(comparison: Comparison, task: Task, runs: Sequence[Run], file: Path) -> None:
    """All curves, one color per side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for side, color in zip(comparison.sides, COLORS, strict=False):
        for number, one in enumerate(one for one in runs if one[comparison.name] == side):
            steps, rewards = [point[0] for point in one["curve"]], [point[1] for point in one["curve"]]
            axes.plot(steps, rewards, color=color, linewidth=1.2, alpha=0.8, label=side if number == 0 else None)
    axes.set(title=task.name, xlabel="environment steps", ylabel="return, mean of 100 training episodes")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def compare(comparison: Comparison, task: Task, seeds: int, folder: Path, again: bool) -> None:
    """Run what is missing of a task, side by side, and write its file and its picture."""
    file = folder / f"{task.name}.json"
    kept = KeptRuns(file, task, again)
    for seed in range(seeds):
        for side in comparison.sides:
            if not kept.has(**{comparison.name: side, "seed": seed}):
                kept.add(run(comparison, task, side, seed))
    verdict = judge(comparison, task, kept.runs)
    command = f"python -m benchmarks.learning_alike --compare {comparison.name} {task.name}"
    kept.write({"command": command, **verdict, "machine": machine()})
    plot(comparison, task, kept.runs, folder / f"{task.name}.png")
    print(f"{task.name}: {verdict['intervals']}, overlap {verdict['overlap']}, learned {verdict['learned']}")


def table(comparison: Comparison, folder: Path) -> str:
    """All results as Markdown."""
    sides = list(comparison.sides)
    lines = [
        f"# Learning with each {comparison.name}: {', '.join(sides)}",
        "",
        f"Final policy, deterministic, {EPISODES} episodes: mean over the seeds with its 95 % bootstrap interval, and",
        "the median of the seconds that training took with one thread. Repeat with",
        f"`python -m benchmarks.learning_alike --compare {comparison.name} --again`.",
        "",
        f"| task | steps | seeds | {' | '.join(sides)} | overlap | {' | '.join(f'{side}, s' for side in sides)} |",
        f"|{'---|' * (4 + 2 * len(sides))}",
    ]
    for task in comparison.tasks:
        file = folder / f"{task.name}.json"
        saved = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if not saved.get("runs"):
            continue
        found = judge(comparison, task, saved["runs"])
        scores = [_told(found, side) for side in comparison.sides]
        seconds = [f"{found['seconds'][side]:.0f}" if side in found["seconds"] else "-" for side in comparison.sides]
        overlap = {True: "yes", False: "no", None: "-"}[found["overlap"]]
        seeds = min(len(values) for values in found["scores"].values())
        steps = f"{saved['task']['steps']:,}"
        lines.append(f"| {' | '.join([task.name, steps, str(seeds), *scores, overlap, *seconds])} |")
    return "\n".join([*lines, ""])


def _told(found: dict[str, Any], side: str) -> str:
    if side not in found["means"]:
        return "-"
    low, high = found["intervals"][side]
    return f"{found['means'][side]:.1f} ({low:.1f} to {high:.1f})"


def main() -> None:
    """Run the named tasks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="names of tasks; all if none is named")
    parser.add_argument("--compare", choices=list(COMPARISONS), default="engine")
    parser.add_argument("--seeds", type=int, help="seeds per side; by default those of the comparison")
    parser.add_argument("--steps", type=int, help="instead of the task's own; for a try")
    parser.add_argument("--again", action="store_true", help="run what is already in the results, too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    comparison = COMPARISONS[arguments.compare]
    unknown = set(arguments.tasks) - {task.name for task in comparison.tasks}
    if unknown:
        parser.error(
            f"unknown task {', '.join(sorted(unknown))}; choose from {', '.join(t.name for t in comparison.tasks)}"
        )
    folder = arguments.output / comparison.folder
    folder.mkdir(parents=True, exist_ok=True)
    for task in comparison.tasks:
        if not arguments.tasks or task.name in arguments.tasks:
            one = task if arguments.steps is None else replace(task, steps=arguments.steps)
            compare(comparison, one, arguments.seeds or comparison.seeds, folder, arguments.again)
            (folder / "README.md").write_text(table(comparison, folder), encoding="utf-8")


if __name__ == "__main__":
    main()
