"""Native and reference engine learn alike: the same presets and seeds with both, and whether the final returns overlap.

    python -m benchmarks.learning_alike [PRESET ...]

Each run is `surefoot train` in a process of its own, then `surefoot evaluate` of the final policy. Results and curves
go to benchmarks/results/learning_alike/.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning import curve_of, surefoot
from surefoot.benchmark.machine import machine

RESULTS = Path(__file__).parent / "results" / "learning_alike"
ENGINES = ("native", "local")
SEEDS = 5
EPISODES = 20
RESAMPLES = 10_000


@dataclass(frozen=True)
class Task:
    """A preset, how long, and what a policy that has not learned reaches at most."""

    preset: str
    steps: int
    untrained: float


TASKS = [
    Task("CartPole-v1", 60_000, 60),
    Task("Pendulum-v1", 100_000, -900),
    Task("cheetah-minute", 300_000, 100),
]


def run(task: Task, engine: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train one seed with one engine and evaluate its final policy."""
    place = folder / f"{task.preset}-{engine}-{seed}"
    fixed = ["--log.console", "off", "--train.eval_episodes", "0", "--train.eval_every", "0", "--train.threads", "1"]
    settings = ["--rollout.engine", engine, "--steps", str(task.steps), "--seed", str(seed), *fixed]
    surefoot("train", task.preset, "--run-dir", str(place), *settings)
    scored = json.loads(surefoot("evaluate", str(place), "--episodes", str(EPISODES), "--seed", "1000", "--json"))
    print(f"{task.preset} {engine} seed {seed}: {scored['mean_reward']:.1f}", flush=True)
    return {"engine": engine, "seed": seed, "mean_reward": scored["mean_reward"], "curve": curve_of(place)}


def interval(scores: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    random = np.random.default_rng(0)
    means = random.choice(np.asarray(scores), (RESAMPLES, len(scores))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def judge(task: Task, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the runs say: an interval an engine, whether they overlap, and whether both have learned at all."""
    scores = {engine: [one["mean_reward"] for one in runs if one["engine"] == engine] for engine in ENGINES}
    intervals = {engine: interval(values) for engine, values in scores.items()}
    overlap = max(low for low, _ in intervals.values()) <= min(high for _, high in intervals.values())
    learned = all(np.median(values) > task.untrained for values in scores.values())
    return {"scores": scores, "intervals": intervals, "overlap": overlap, "learned": learned}


def plot(task: Task, runs: list[dict[str, Any]]) -> None:
    """All curves, one color an engine."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for engine, color in zip(ENGINES, ("tab:blue", "tab:orange"), strict=True):
        for number, one in enumerate(one for one in runs if one["engine"] == engine):
            steps, rewards = [point[0] for point in one["curve"]], [point[1] for point in one["curve"]]
            axes.plot(steps, rewards, color=color, linewidth=1.2, alpha=0.8, label=engine if number == 0 else None)
    axes.set(title=task.preset, xlabel="environment steps", ylabel="return, mean of 100 training episodes")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(RESULTS / f"{task.preset}.png", dpi=110)


def main() -> None:
    """Run the named tasks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", help="presets; all tasks if none is named")
    wanted = parser.parse_args().presets
    RESULTS.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        if wanted and task.preset not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            runs = [run(task, engine, seed, Path(folder)) for seed in range(SEEDS) for engine in ENGINES]
        verdict = judge(task, runs)
        command = f"python -m benchmarks.learning_alike {task.preset}"
        result = {"command": command, "task": vars(task), **verdict, "machine": machine(), "runs": runs}
        (RESULTS / f"{task.preset}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        plot(task, runs)
        print(f"{task.preset}: {verdict['intervals']}, overlap {verdict['overlap']}, learned {verdict['learned']}")


if __name__ == "__main__":
    main()
