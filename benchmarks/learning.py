"""Learning over several seeds with the presets, against thresholds that a broken implementation misses.

    make learn                                     all tasks: hours
    python -m benchmarks.learning CartPole-v1      one preset

Each run is `surefoot train` in a process of its own, then `surefoot evaluate` of the final policy. Results and curves
go to benchmarks/results/learning/.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.benchmark.report import machine

RESULTS = Path(__file__).parent / "results" / "learning"
EPISODES = 20
CURVE_POINTS = 60


@dataclass(frozen=True)
class Task:
    """A preset, its seeds, and what the final evaluations must reach, or must not exceed."""

    preset: str
    seeds: int
    threshold: float
    needs: str  # "all" seeds, the "median", or "4 of 5"
    published: str = ""
    steps: int | None = None
    episodes: int = EPISODES
    memory: bool = True  # False: the preset's memory is taken away, and the task must not be solved

    @property
    def name(self) -> str:
        return self.preset if self.memory else f"{self.preset}-without-memory"

    @property
    def title(self) -> str:
        return self.preset if self.memory else f"{self.preset} without memory"

    def passes(self, scores: Sequence[float]) -> bool:
        if self.needs == "median":
            return self.reaches(statistics.median(scores))
        wanted = self.seeds if self.needs == "all" else int(self.needs.split()[0])
        return sum(map(self.reaches, scores)) >= min(wanted, len(scores))

    def reaches(self, score: float) -> bool:
        return score >= self.threshold if self.memory else score <= self.threshold


TASKS = [
    Task("CartPole-v1", 5, 475, "all", "500 ± 0 (rl-zoo, 100k steps)"),
    Task("Pendulum-v1", 3, -250, "median", "-172 ± 104 (rl-zoo, 100k steps, gSDE)"),
    Task("Acrobot-v1", 3, -90, "median", "-73.5 ± 18 (rl-zoo, 1M steps)"),
    Task("MountainCarContinuous-v0", 3, 90, "median", "90 (where Gymnasium calls it solved)"),
    Task("simple-spread", 3, -22, "median", "-27 to -42 untrained"),
    Task("HalfCheetah-v5", 2, 5000, "median", "5819 ± 664 (rl-zoo, one run, 1M steps)"),
    Task("CartPoleNoVel-v1", 5, 450, "4 of 5", "500 ± 0 (rl-zoo, 100k steps)", steps=50_000),
    Task("CartPoleNoVel-v1", 5, 60, "all", steps=50_000, memory=False),
    Task("PendulumNoVel-v1", 3, -300, "median", "-218 ± 140 (rl-zoo, 100k steps)"),
    Task("PendulumNoVel-v1", 3, -600, "all", memory=False),
    Task("AcrobotNoVel-v1", 3, -100, "median"),
    Task("TMaze-v0", 3, 0.95, "all", episodes=200),
    Task("TMaze-v0", 3, 0.6, "all", episodes=200, memory=False),
    Task("RepeatPrevious-v0", 3, 0.95, "all"),
    Task("RepeatPrevious-v0", 3, 0.3, "all", memory=False),
]


def run_seed(task: Task, seed: int, folder: Path) -> dict[str, Any]:
    """Train one seed and evaluate its final policy."""
    run = folder / f"{task.name}-{seed}"
    length = [] if task.steps is None else ["--steps", str(task.steps)]
    policy = [] if task.memory else ["--policy.memory", "none"]
    fixed = ["--train.threads", "1", "--log.console", "off", "--train.eval_episodes", "0"]
    surefoot("train", task.preset, "--seed", str(seed), "--run-dir", str(run), *fixed, *length, *policy)
    scored = surefoot("evaluate", str(run), "--episodes", str(task.episodes), "--seed", "1000", "--json")
    evaluation = json.loads(scored)
    curve = curve_of(run)
    print(f"{task.name} seed {seed}: {evaluation['mean_reward']:.4g} ± {evaluation['std_reward']:.4g}", flush=True)
    return {
        "seed": seed,
        "mean_reward": evaluation["mean_reward"],
        "std_reward": evaluation["std_reward"],
        "curve": curve,
        "train_s": curve[-1][2],
    }


def run_task(task: Task, workers: int) -> None:
    """All seeds of a task, `workers` at a time; its result and its curve are written anew as each seed is done."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        pending = [pool.submit(run_seed, task, seed, Path(folder)) for seed in range(task.seeds)]
        for done in as_completed(pending):
            runs.append(done.result())
            write_result(task, sorted(runs, key=lambda run: run["seed"]))


def write_result(task: Task, runs: list[dict[str, Any]]) -> None:
    """The JSON and the picture of a task."""
    scores = [run["mean_reward"] for run in runs]
    result = {
        "command": f"python -m benchmarks.learning {task.preset}",
        "task": {key: value for key, value in vars(task).items() if value not in (None, "")},
        "passed": task.passes(scores),
        "median": statistics.median(scores),
        "machine": machine(),
        "runs": runs,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{task.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(task, result["runs"])


def plot(task: Task, runs: list[dict[str, Any]]) -> None:
    """The seeds' learning curves beside the published score."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for run in runs:
        steps, rewards = [point[0] for point in run["curve"]], [point[1] for point in run["curve"]]
        label = f"seed {run['seed']} (final evaluation {run['mean_reward']:.4g})"
        axes.plot(steps, rewards, label=label, linewidth=1.5)
    bound = "threshold" if task.memory else "must stay below"
    axes.axhline(task.threshold, color="gray", linestyle=":", label=f"{bound} {task.threshold:g}")
    if task.published:
        published = float(task.published.split()[0])
        axes.axhline(published, color="black", linestyle="--", linewidth=1, label=f"published {task.published}")
    axes.set(title=task.title, xlabel="environment steps", ylabel="return, mean of 100 training episodes")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.savefig(RESULTS / f"{task.name}.png", dpi=110)
    pyplot.close(figure)


def table() -> str:
    """All results as Markdown."""
    lines = [
        "# Learning with the presets",
        "",
        f"Final policy after training, deterministic, {EPISODES} episodes (T-maze: 200). Repeat with `make learn`, or",
        "one preset with `python -m benchmarks.learning PRESET`. Without memory, `--policy.memory none`, tasks that",
        "need it must stay unsolved.",
        "",
        "| preset | steps | mean reward of each seed | median | must | passed | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        file = RESULTS / f"{task.name}.json"
        if file.exists():
            result = json.loads(file.read_text(encoding="utf-8"))
            scores = ", ".join(f"{run['mean_reward']:.4g}" for run in result["runs"])
            bound = f"{'reach' if task.memory else 'stay below'} {task.threshold:g} ({task.needs})"
            steps, passed = f"{result['runs'][0]['curve'][-1][0]:,.0f}", "yes" if result["passed"] else "no"
            cells = task.title, steps, scores, f"{result['median']:.4g}", bound, passed, task.published
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def curve_of(run: Path) -> list[list[float]]:
    """(step, return, seconds) points, thinned out."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    points = [
        [record["step"], round(record["rollout/ep_rew_mean"], 2), round(record["time/time_elapsed"], 1)]
        for record in records
        if "rollout/ep_rew_mean" in record
    ]
    stride = max(1, len(points) // CURVE_POINTS)
    return [*points[:-1:stride], points[-1]]


def surefoot(*arguments: str) -> str:
    """Run a command; what it printed."""
    command = [sys.executable, "-c", "import sys; from surefoot.cli.main import main; sys.exit(main())", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", help="tasks to run; all if none is given")
    parser.add_argument("--workers", type=int, default=2, help="runs side by side")
    arguments = parser.parse_args()
    chosen = [task for task in TASKS if not arguments.presets or task.preset in arguments.presets]
    for task in chosen:
        run_task(task, arguments.workers)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "README.md").write_text(table(), encoding="utf-8")
    results = [json.loads((RESULTS / f"{task.name}.json").read_text(encoding="utf-8")) for task in chosen]
    return 0 if all(result["passed"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
