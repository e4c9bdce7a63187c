"""What learning on several processes costs: `torchrun --standalone --nproc-per-node 2 -m benchmarks.torchrun OUT.json`

Per iteration: its time in one process with one core and in all processes together, the time that the first process
spends with exchanging data (which includes waiting for the others), and the bytes that each process sends. Processes
that share a machine have no more cores than one process alone: this measures the overhead, not a gain.
"""

import json
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from torch import Tensor

from surefoot.benchmark.report import machine
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.machine.ranks import ALONE, Ranks, together
from surefoot.settings.layers import build_config

ITERATIONS, REPEATS = 8, 3
CASES: dict[str, dict[str, Any]] = {
    "CartPole, 64 x 64": {"env.id": "CartPole-v1", "rollout.num_envs": 64, "rollout.num_steps": 64},
    "HalfCheetah, 16 x 128": {
        "env.id": "HalfCheetah-v5",
        "rollout.num_envs": 16,
        "rollout.num_steps": 128,
        "normalize.obs": True,
        "normalize.returns": True,
    },
    "HalfCheetah, 16 x 128, 256 x 256": {
        "env.id": "HalfCheetah-v5",
        "rollout.num_envs": 16,
        "rollout.num_steps": 128,
        "policy.hidden": [256, 256],
        "normalize.obs": True,
    },
}
LEARNING = {"ppo.epochs": 4, "ppo.batch_size": 512, "train.threads": 1, "rollout.workers": 1}


class TimedRanks(Ranks):
    """Adds up the time of all exchanges."""

    spent_s = 0.0

    def gather(self, value: Any) -> list[Any]:
        began = time.perf_counter()
        try:
            return super().gather(value)
        finally:
            self.spent_s += time.perf_counter() - began

    def sum(self, *tensors: Tensor) -> None:
        began = time.perf_counter()
        super().sum(*tensors)
        self.spent_s += time.perf_counter() - began


def measure(settings: dict[str, Any], ranks: Ranks) -> dict[str, float]:
    """Medians over iterations, after the first one."""
    config = build_config(LEARNING | settings)
    with closing(build_env(config, ranks=ranks)) as env:
        policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
        trainer = build_trainer(config, env, policy, ranks)
        trainer.iterate()
        times, exchanges, sent = [], [], ranks.bytes_sent
        for _ in range(ITERATIONS):
            before, began = getattr(ranks, "spent_s", 0.0), time.perf_counter()
            trainer.iterate()
            times.append(time.perf_counter() - began)
            exchanges.append(getattr(ranks, "spent_s", 0.0) - before)
        return {
            "iteration_ms": 1e3 * statistics.median(times),
            "exchange_ms": 1e3 * statistics.median(exchanges),
            "bytes": (ranks.bytes_sent - sent) / ITERATIONS,
            "parameters": sum(parameter.numel() for parameter in policy.parameters()),
        }


def main(path: Path) -> None:
    """All cases, alternating between one process and all."""
    with together() as joined:
        ranks = TimedRanks(joined.rank, joined.size)
        results: dict[str, Any] = {}
        for name, settings in CASES.items():
            repeats: dict[str, list[dict[str, float]]] = {"alone": [], "together": []}
            for _ in range(REPEATS):
                if ranks.is_first:
                    repeats["alone"].append(measure(settings, ALONE))
                ranks.gather(None)
                repeats["together"].append(measure(settings, ranks))
            results[name] = {
                how: {key: round(statistics.median(one[key] for one in all_), 2) for key in all_[0]}
                for how, all_ in repeats.items()
                if all_
            }
        if ranks.is_first:
            path.write_text(
                json.dumps({"processes": ranks.size, "machine": machine(), "cases": results}, indent=2) + "\n"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
