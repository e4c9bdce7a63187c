"""Very many iterations of tiny tasks: RAM, open files and threads must stay flat. `python -m benchmarks.soak`

Each task is a real run with checkpoints, evaluations, metrics and a log. Samples are taken at even distances; growth is
the median of the last quarter of a run minus that of the second quarter.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from surefoot import PPO, Hook

TINY: dict[str, Any] = {"num_envs": 2, "num_steps": 4, "batch_size": 8, "epochs": 1, "hidden": 4}
OFTEN: dict[str, Any] = {
    "train.checkpoint_every": 80_000,
    "train.eval_every": 80_000,
    "train.eval_episodes": 2,
    "log.log_every": 100,
}
TASKS: dict[str, dict[str, Any]] = {
    "native": {"env": "CartPole-v1", "engine": "native"},
    "native, LSTM": {"env": "CartPoleNoVel-v1", "engine": "native", "memory": {"kind": "lstm", "hidden_size": 4}},
    "local": {"env": "CartPole-v1", "engine": "local"},
    "processes": {"env": "CartPole-v1", "engine": "processes", "workers": 1},
}
SAMPLES = 40


class Soak(Hook):
    """Samples resources at even times, and stops when the time is over."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._began, self._seconds = time.monotonic(), seconds
        self.samples: list[dict[str, float]] = []

    def after_iteration(self, report: Any) -> None:
        """One sample if it is time for it."""
        elapsed = time.monotonic() - self._began
        if elapsed >= len(self.samples) * self._seconds / SAMPLES:
            self.samples.append({"iteration": report.progress.iteration, "elapsed_s": round(elapsed, 1), **resources()})
        if elapsed >= self._seconds:
            self.run.stop("the time is over")


def resources() -> dict[str, float]:
    """RAM in MB, open files and threads of this process and its children."""
    this = psutil.Process()
    found = {"ram_mb": 0.0, "files": 0, "threads": 0, "processes": 0}
    for process in [this, *this.children(recursive=True)]:
        found["ram_mb"] += round(process.memory_info().rss / 1e6, 2)
        found["files"] += process.num_fds()
        found["threads"] += process.num_threads()
        found["processes"] += 1
    return found


def soak(name: str, seconds: float) -> dict[str, Any]:
    """One task for so long."""
    settings = dict(TASKS[name])
    hook = Soak(seconds)
    with tempfile.TemporaryDirectory() as folder:
        agent = PPO(settings.pop("env"), **settings, **TINY, **OFTEN)
        agent.learn(10**12, run_dir=Path(folder) / "run", hooks=[hook])
        agent.close()
    samples = hook.samples
    quarter = len(samples) // 4
    growth = {
        key: round(_median(samples[-quarter:], key) - _median(samples[quarter : 2 * quarter], key), 2)
        for key in ("ram_mb", "files", "threads", "processes")
    }
    return {"task": name, "iterations": samples[-1]["iteration"], "growth": growth, "samples": samples}


def table(results: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [
        "| task | iterations | RAM at 25 %, MB | RAM at the end, MB | growth: MB | files | threads |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        early, late, growth = result["samples"][len(result["samples"]) // 4], result["samples"][-1], result["growth"]
        lines.append(
            f"| {result['task']} | {result['iterations']:,} | {early['ram_mb']:.1f} | {late['ram_mb']:.1f} |"
            f" {growth['ram_mb']:+.2f} | {growth['files']:+g} | {growth['threads']:+g} |"
        )
    return "\n".join(lines)


def _median(samples: list[dict[str, float]], key: str) -> float:
    return statistics.median(sample[key] for sample in samples)


def main() -> None:
    """Run the tasks one after the other and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="for all tasks together")
    parser.add_argument("--output", type=Path, help="a JSON file for the samples")
    arguments = parser.parse_args()
    results = [soak(name, arguments.minutes * 60 / len(TASKS)) for name in TASKS]
    print(table(results))
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
