"""What options cost: an iteration with each, over one without, measured in turns on the same machine.

    python -m benchmarks.costs                 HalfCheetah-v5, 64 envs x 64 steps
    python -m benchmarks.costs --repeats 9

Results go to benchmarks/results/speed/costs/.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from surefoot.benchmark.configured import Training
from surefoot.benchmark.report import describe_machine, machine
from surefoot.benchmark.rounds import Effort, measure, spread
from surefoot.benchmark.subject import Plan, Recipe, Window, run_recipe
from surefoot.policies.actor_critic import ActorCritic
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.telemetry.watch import AlertWatch
from surefoot.training.reporting import metrics_of

RESULTS = Path(__file__).parent / "results" / "speed" / "costs"
BASE = {
    **{"env.id": "HalfCheetah-v5", "rollout.num_envs": 64, "rollout.num_steps": 64},
    **{"ppo.batch_size": 512, "ppo.epochs": 10, "normalize.obs": True, "normalize.returns": True},
}
QUANTILES = {"kind": "quantile", "num_quantiles": 51}


@dataclass(frozen=True)
class Option:
    """What is measured: settings, and the option that it is compared with."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    over: str = "scalar critic"
    subject: str = "training"
    """The kind of its recipe."""


OPTIONS = [
    Option("scalar critic"),
    Option("quantile critic, 51", {"policy.critic": QUANTILES}),
    Option("twin critics", {"policy.critic": "twin"}),
    Option("twin quantile critics, 51", {"policy.critic": {"kind": "twin", "of": QUANTILES}}),
    Option("variance scaling", {"optimizer.transforms": {"variance": {"kind": "variance_scaling"}}}),
    Option("KL penalty", {"ppo.terms": {"kl": {"kind": "kl_penalty", "weight": 0.1}}}),
    Option("no monitor", over="no monitor", subject="unmonitored"),
    Option("monitor: norms by part, alerts", over="no monitor", subject="monitored"),
    Option("PyTorch's learner", {"train.learner": "torch"}, over="PyTorch's learner"),
    Option(
        "adversary (PGD, 3 steps), in PyTorch",
        {"train.learner": "torch", "ppo.terms": {"adversary": {"kind": "adversary", "weight": 0.1}}},
        over="PyTorch's learner",
    ),
]


class Monitored(Training):
    """Iterations, and the alerts that watch them."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._watch = AlertWatch(config)

    def run(self, iterations: int) -> Window:
        """Iterations of the trainer; the time of alerts counts as learning."""
        steps, rollout_s, learn_s = 0, 0.0, 0.0
        with self._trainer.execution.learning():
            for _ in range(iterations):
                report = self._trainer.iterate()
                began = time.perf_counter()
                self._watch.observe(metrics_of(report, 0.0))
                steps += report.stats.num_steps
                rollout_s += report.rollout_s
                learn_s += report.learn_s + time.perf_counter() - began
        return Window(iterations, steps, rollout_s, learn_s)


class Unmonitored(Training):
    """Iterations with the norm of the whole gradient only."""

    def __init__(self, config: Config) -> None:
        with patch.object(ActorCritic, "part_of", lambda policy, parameter: "policy"):
            super().__init__(config)


SUBJECTS = {"monitored": Monitored, "unmonitored": Unmonitored}


def recipe_of(option: Option) -> Recipe:
    """How to build the subject of an option."""
    recipe = run_recipe("training", build_config(BASE, option.settings))
    return recipe if option.subject == "training" else recipe | {"kind": "benchmarks.costs", "side": option.subject}


def build(recipe: Recipe) -> Training:
    """The subject of a recipe, in the process that it is measured in."""
    return SUBJECTS[recipe["side"]](build_config(recipe["config"]))


def main() -> None:
    """Measure all options and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5)
    arguments = parser.parse_args()
    plans = [Plan(option.name, recipe_of(option), None) for option in OPTIONS]
    rounds = measure(plans, Effort(arguments.repeats, arguments.seconds), print)
    measured = {subject.name: subject for subject in rounds.subjects}
    lines, results = [], {}
    for option in OPTIONS:
        subject, base = measured[option.name], measured[option.over]
        if subject.has_failed:
            raise RuntimeError(f"{subject.name}: {subject.error}")
        pairs = zip(subject.windows, base.windows, strict=True)
        cost = spread([(a.rollout_ms + a.learn_ms) / (b.rollout_ms + b.learn_ms) for a, b in pairs])
        rollout, learn = (subject.spread(what) for what in ("rollout_ms", "learn_ms"))
        results[subject.name] = {"cost": cost.median, "low": cost.low, "high": cost.high}
        over = "" if option is OPTIONS[0] or option.over != option.name else " (below: over this)"
        lines.append(
            f"| {subject.name}{over} | {cost.with_range('.2f')} | {rollout.with_range('.1f')}"
            f" | {learn.with_range('.1f')} |"
        )
    command = f"python -m benchmarks.costs --repeats {arguments.repeats} --seconds {arguments.seconds:g}"
    RESULTS.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "command": command,
        "base": BASE,
        "options": [asdict(option) for option in OPTIONS],
        "results": results,
        "machine": machine(),
    }
    (RESULTS / "costs.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    text = [
        "# What options cost",
        "",
        "HalfCheetah-v5, 64 envs x 64 steps, 10 epochs, batch 512, 64-64 networks, native. Milliseconds of an",
        "iteration over those of the first line, each repeat by that of the same round: median (lowest to highest).",
        "The monitor and the adversary have lines of their own to be compared with.",
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
