"""Two checkouts of Surefoot side by side, in turns: `python -m benchmarks.against OTHER_CHECKOUT`.

Each checkout runs with the Python of its own `.venv`, in a process that stays alive and iterates when told to. The
ratio of a round is of windows that were measured one after the other.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

TASKS: dict[str, dict[str, Any]] = {
    "CartPole-v1, 8 x 128": {
        "env.id": "CartPole-v1",
        "rollout.num_envs": 8,
        "rollout.num_steps": 128,
        "ppo.batch_size": 256,
    },
    "HalfCheetah-v5, 64 x 64": {
        "env.id": "HalfCheetah-v5",
        "rollout.num_envs": 64,
        "rollout.num_steps": 64,
        "ppo.batch_size": 1024,
    },
    "CartPoleNoVel-v1, 8 x 128, LSTM 64": {
        "env.id": "CartPoleNoVel-v1",
        "rollout.num_envs": 8,
        "rollout.num_steps": 128,
        "ppo.batch_size": 256,
        "policy.memory": "lstm",
    },
}
_SUBJECT = """
import json, sys, time
from surefoot.compose import Specs, build_env, build_policy, build_trainer
try:
    from surefoot.settings.layers import build_config
except ImportError:  # earlier versions
    from surefoot.core.layers import build_config
config = build_config(json.loads(sys.argv[1]))
env = build_env(config)
trainer = build_trainer(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))
if hasattr(trainer, "execution"):  # as `Trainer.train` does; earlier versions set threads for the whole process
    trainer.execution.learning().__enter__()
for line in sys.stdin:
    began, steps = time.perf_counter(), 0
    for _ in range(int(line)):
        steps += trainer.iterate().stats.num_steps
    print(json.dumps(steps / (time.perf_counter() - began)), flush=True)
"""


class Checkout:
    """One side: a process of a checkout's own Python."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        command = [str(folder / ".venv/bin/python"), "-P", "-c", _SUBJECT, json.dumps(settings)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder)

    def steps_per_s(self, iterations: int) -> float:
        """The speed of some iterations."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(iterations, file=self._process.stdin, flush=True)
        return float(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(name: str, other: Path, rounds: int, window_s: float) -> dict[str, Any]:
    """The speed of both at a task, and this checkout's over the other's, round by round."""
    settings = TASKS[name]
    here, there = Checkout(Path(__file__).parents[1], settings), Checkout(other, settings)
    size = settings["rollout.num_envs"] * settings["rollout.num_steps"]
    iterations = max(1, round(window_s * here.steps_per_s(3) / size))
    there.steps_per_s(3)
    speeds = []
    for number in range(rounds):
        order = (here, there) if number % 2 == 0 else (there, here)
        measured = {side: side.steps_per_s(iterations) for side in order}
        speeds.append((measured[here], measured[there]))
    here.close()
    there.close()
    ratios = sorted(ours / theirs for ours, theirs in speeds)
    return {
        "task": name,
        "iterations": iterations,
        "here": statistics.median(ours for ours, _ in speeds),
        "there": statistics.median(theirs for _, theirs in speeds),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
    }


def main() -> int:
    """Compare at all tasks and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout with a built .venv")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--window-s", type=float, default=2.0, help="seconds per window, about")
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    arguments = parser.parse_args()
    results = []
    print("| task | here, steps/s | there, steps/s | here over there |\n|---|---:|---:|---:|")
    for name in TASKS:
        result = compare(name, arguments.other.resolve(), arguments.rounds, arguments.window_s)
        results.append(result)
        low, high = result["ratios"][0], result["ratios"][-1]
        print(
            f"| {name} | {result['here']:,.0f} | {result['there']:,.0f} | **{result['ratio']:.3f}**"
            f" ({low:.3f} to {high:.3f}) |",
            flush=True,
        )
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
