"""Speed of rollouts in which other policies act in half of the rows, beside one policy alone and stepping.

    python -m benchmarks.several_policies             11 rounds, all in turns
    python -m benchmarks.several_policies --rounds 3  a quick look

A two-agent env (docs/extend/examples/duel.cpp) and a policy with an LSTM of 128 units. The second agent of every env is
played by one or by seven others. Ratios are medians over rounds, in each of which every subject takes a turn.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

from surefoot.benchmark.report import machine
from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.machine.torch_defaults import torch_threads
from surefoot.native.building import build
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.layers import build_config

RESULTS = Path(__file__).parent / "results" / "several_policies.json"
DUEL = Path(__file__).parents[1] / "docs" / "extend" / "examples" / "duel.cpp"
SECONDS = 1.0
"""Of a subject's turn, at least."""


def subject(env_id: str, num_others: int, envs: int, steps: int, is_stepped: bool = False) -> Callable[[], float]:
    """A function that collects for a while and returns the steps of rows per second."""
    sizes = {"rollout.num_envs": envs, "rollout.num_steps": steps, "ppo.batch_size": envs * steps}
    memory = {"policy.memory": "lstm", "policy.memory.hidden_size": 128, "rollout.engine": "native"}
    config = build_config({"env.id": env_id}, sizes | memory)
    env = build_env(config)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    collector = build_collector(config, env, policy)
    for other in range(num_others):
        name = f"other {other}"
        collector.rows.actors.add(name, deepcopy(policy))
        collector.rows.actors.assign(slice(1 + 2 * other, None, 2 * num_others), name)
    if is_stepped:
        collector = StepwiseCollector(env, policy, steps, config.train.seed, rows=collector.rows)
    collector.collect(policy)

    def run() -> float:
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < SECONDS:
            collector.collect(policy)
            count += 1
        return count * steps * 2 * envs / (time.perf_counter() - began)

    return run


def main() -> None:
    """Measure and print; `--save` keeps the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=128)
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / DUEL.name
        source.write_text(DUEL.read_text())
        env_id, size = str(build(source)), (options.envs, options.steps)
        subjects = {"1 policy": subject(env_id, 0, *size)}
        subjects |= {f"{1 + others} policies": subject(env_id, others, *size) for others in (1, 7)}
        subjects["2 policies, stepped"] = subject(env_id, 1, *size, is_stepped=True)
        with torch_threads(1):  # as training collects
            rounds = [{name: run() for name, run in subjects.items()} for _ in range(options.rounds)]
    table = {}
    for name in subjects:
        ratio = statistics.median(one[name] / one["1 policy"] for one in rounds)
        table[name] = {"steps_per_s": round(statistics.median(one[name] for one in rounds)), "ratio": round(ratio, 3)}
        print(f"{name:24}{table[name]['steps_per_s']:>12,} steps/s {table[name]['ratio']:>8.3f}")
    stepped = statistics.median(one["2 policies"] / one["2 policies, stepped"] for one in rounds)
    print(f"2 policies, native against stepped: {stepped:.1f}x")
    if options.save:
        size_of = {"envs": options.envs, "steps": options.steps, "rounds": options.rounds}
        kept = {"machine": machine(), **size_of, "subjects": table, "native_against_stepped": round(stepped, 1)}
        RESULTS.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
