"""End-to-end speed side by side with Stable-Baselines3: same env, hyperparameters, threads and process, in turns.

    make bench                                        all tasks, a few minutes on an idle machine
    python -m benchmarks.against_sb3 --repeats 7      more repeats

Steps are counted as executed; each side warms up first; repeats alternate; the ratio is the median of the repeats'.
Results go to benchmarks/results/speed/.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.machine import machine
from surefoot import PPO

THREADS = 1
"""For both sides; networks this small are not faster with more."""
RESULTS = Path(__file__).parent / "results" / "speed"


@dataclass(frozen=True)
class Task:
    """One comparison: policy 64-64 tanh on both sides."""

    env: str
    num_envs: int
    num_steps: int
    epochs: int
    num_minibatches: int
    iterations: int

    @property
    def name(self) -> str:
        return (
            f"{self.env}, {self.num_envs} x {self.num_steps}, {self.epochs} epochs, {self.num_minibatches} minibatches"
        )

    @property
    def rollout(self) -> int:
        return self.num_envs * self.num_steps

    @property
    def batch_size(self) -> int:
        return self.rollout // self.num_minibatches


TASKS = [
    Task("CartPole-v1", 8, 128, 4, 4, iterations=40),
    Task("HalfCheetah-v5", 8, 256, 10, 32, iterations=5),
]


class Surefoot:
    """Our side: the plain torch path with the `local` engine."""

    def __init__(self, task: Task) -> None:
        # A factory and not an id, which would bring its preset: both sides run the same numbers.
        settings: dict[str, Any] = {"num_envs": task.num_envs, "num_steps": task.num_steps, "epochs": task.epochs}
        self.agent = PPO(_factory(task.env), batch_size=task.batch_size, eval_episodes=0, threads=THREADS, **settings)

    def run(self, steps: int) -> None:
        self.agent.learn(steps)


class StableBaselines3:
    """Their side, as its users run it."""

    def __init__(self, task: Task) -> None:
        import stable_baselines3
        from stable_baselines3.common.env_util import make_vec_env

        env = make_vec_env(task.env, n_envs=task.num_envs)
        self.model = stable_baselines3.PPO(
            "MlpPolicy", env, n_steps=task.num_steps, n_epochs=task.epochs, batch_size=task.batch_size, device="cpu"
        )

    def run(self, steps: int) -> None:
        self.model.learn(steps)


def measure(side: Surefoot | StableBaselines3, task: Task) -> float:
    """Steps per second of one repeat."""
    steps = task.iterations * task.rollout
    began = time.perf_counter()
    side.run(steps)
    return steps / (time.perf_counter() - began)


def compare(task: Task, repeats: int) -> dict[str, Any]:
    """Alternate the two sides and relate each repeat of ours to the one of theirs beside it."""
    ours, theirs = Surefoot(task), StableBaselines3(task)
    for side in (ours, theirs):
        side.run(2 * task.rollout)
    pairs = []
    for _ in range(repeats):
        pairs.append((measure(ours, task), measure(theirs, task)))
        print(f"{task.name}: {pairs[-1][0]:,.0f} against {pairs[-1][1]:,.0f} steps/s", flush=True)
    ratios = [mine / other for mine, other in pairs]
    return {
        "task": task.name,
        "surefoot_steps_per_s": statistics.median(pair[0] for pair in pairs),
        "sb3_steps_per_s": statistics.median(pair[1] for pair in pairs),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "repeats": repeats,
    }


def table(results: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| task (64-64 tanh) | Surefoot steps/s | Stable-Baselines3 steps/s | ratio (range of repeats) |",
        "|---|---|---|---|",
    ]
    for result in results:
        low, high = result["ratio_range"]
        lines.append(
            f"| {result['task']} | {result['surefoot_steps_per_s']:,.0f} | {result['sb3_steps_per_s']:,.0f} |"
            f" **{result['ratio']:.2f}** ({low:.2f} to {high:.2f}) |"
        )
    return "\n".join(lines)


def _factory(env_id: str) -> Any:
    from surefoot.core.config import EnvConfig
    from surefoot.envs.make import gymnasium_factory

    return gymnasium_factory(env_id, EnvConfig())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results = [compare(task, arguments.repeats) for task in TASKS]
    RESULTS.mkdir(parents=True, exist_ok=True)
    record = {
        "command": f"python -m benchmarks.against_sb3 --repeats {arguments.repeats}",
        "threads": torch.get_num_threads(),
        "machine": machine(),
        "results": results,
    }
    (RESULTS / "against_sb3.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = f"# Against Stable-Baselines3\n\n`{record['command']}`\n\n{table(results)}\n"
    (RESULTS / "README.md").write_text(text, encoding="utf-8")
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
