"""What options cost: an iteration with each, over one without, measured in turns on the same machine.

    python -m benchmarks.costs                 HalfCheetah-v5, 64 envs x 64 steps
    python -m benchmarks.costs --repeats 9

Results go to benchmarks/results/speed/costs/.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from surefoot.benchmark.machine import describe_machine, machine
from surefoot.benchmark.recipe import Plan, training_recipe
from surefoot.benchmark.rounds import Effort, measure
from surefoot.benchmark.spread import spread
from surefoot.core.layers import build_config

RESULTS = Path(__file__).parent / "results" / "speed" / "costs"
BASE = {
    **{"env.id": "HalfCheetah-v5", "rollout.num_envs": 64, "rollout.num_steps": 64},
    **{"ppo.batch_size": 512, "ppo.epochs": 10, "normalize.obs": True, "normalize.returns": True},
}
QUANTILES = {"kind": "quantile", "num_quantiles": 51}
OPTIONS: dict[str, dict[str, Any]] = {
    "scalar critic": {},
    "quantile critic, 51": {"policy.critic": QUANTILES},
    "twin critics": {"policy.critic": "twin"},
    "twin quantile critics, 51": {"policy.critic": {"kind": "twin", "of": QUANTILES}},
    "variance scaling": {"optimizer.transforms": {"variance": {"kind": "variance_scaling"}}},
    "KL penalty": {"ppo.terms": {"kl": {"kind": "kl_penalty", "weight": 0.1}}},
}


def main() -> None:
    """Measure all options and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5)
    arguments = parser.parse_args()
    plans = [Plan(name, training_recipe(build_config(BASE, settings)), None) for name, settings in OPTIONS.items()]
    rounds = measure(plans, Effort(arguments.repeats, arguments.seconds), print)
    base = rounds.subjects[0]
    lines, results = [], {}
    for subject in rounds.subjects:
        if subject.has_failed:
            raise RuntimeError(f"{subject.name}: {subject.error}")
        pairs = zip(subject.windows, base.windows, strict=True)
        cost = spread([(a.rollout_ms + a.learn_ms) / (b.rollout_ms + b.learn_ms) for a, b in pairs])
        rollout, learn = (subject.spread(what) for what in ("rollout_ms", "learn_ms"))
        results[subject.name] = {"cost": cost.median, "low": cost.low, "high": cost.high}
        lines.append(
            f"| {subject.name} | {cost.with_range('.2f')} | {rollout.with_range('.1f')} | {learn.with_range('.1f')} |"
        )
    command = f"python -m benchmarks.costs --repeats {arguments.repeats} --seconds {arguments.seconds:g}"
    RESULTS.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "command": command,
        "base": BASE,
        "options": OPTIONS,
        "results": results,
        "machine": machine(),
    }
    (RESULTS / "costs.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = [
        "# What options cost",
        "",
        "HalfCheetah-v5, 64 envs x 64 steps, 10 epochs, batch 512, 64-64 networks, native. Milliseconds of an",
        "iteration over those of the first line, each repeat by that of the same round: median (lowest to highest).",
        "",
        "| option | iteration | rollout, ms | learning, ms |",
        "|---|---:|---:|---:|",
        *lines,
        "",
        f"`{command}`, {describe_machine(record['machine'])}.",
        "",
    ]
    (RESULTS / "costs.md").write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
