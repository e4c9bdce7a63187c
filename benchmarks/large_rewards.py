"""What large rewards do to the actor, and whether clipping its gradient apart from the critic's helps or hurts.

    python -m benchmarks.large_rewards --env CartPole-v1

A preset runs with its own rewards and with rewards times 1000, clipped together and apart, without normalized returns.
"""

import argparse
import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import TransformReward

from benchmarks.kept_runs import KeptRuns
from surefoot import PPO
from surefoot.data.records import IterationReport
from surefoot.presets import load_preset
from surefoot.telemetry import names
from surefoot.telemetry.watch import AlertWatch
from surefoot.training.reporting import metrics_of

RESULTS = Path(__file__).parent / "results" / "large_rewards"
ALERT = "actor_starved"


@dataclass(frozen=True)
class Task:
    """The preset of an env without normalized returns."""

    env: str
    steps: int
    episodes: int = 50


def scaled(env: str, scale: float) -> gym.Env[Any, Any]:
    """The env with rewards times a factor."""
    return TransformReward(gym.make(env), lambda reward: scale * float(reward))


def train(task: Task, scale: float, clip: str, seed: int) -> dict[str, Any]:
    """One run: its score in units of the env's own rewards, median norms, and whether the alert was raised."""
    preset = {
        f"{section}.{key}": value for section, keys in load_preset(task.env).items() for key, value in keys.items()
    }
    del preset["env.id"]
    changed = {"normalize.returns": False, "optimizer.clip_grad": clip, "train.eval_every": 0, "log.console": "off"}
    agent = PPO(partial(scaled, task.env, scale), seed=seed, **preset | changed)
    watch, seen, raised = AlertWatch(agent.config), list[dict[str, float]](), set[str]()

    def keep(report: IterationReport) -> None:
        seen.append(metrics_of(report, 0.0))
        watch.observe(seen[-1])
        raised.update(alert.name for alert in watch.raised)

    agent.learn(task.steps, hooks=[keep])
    score = agent.evaluate(task.episodes, seed=1000 + seed).mean_reward / scale
    agent.close()
    norms = {
        name.removeprefix(names.TRAIN_PREFIX): statistics.median(metrics[name] for metrics in seen)
        for name in (names.ACTOR_GRAD_NORM, names.CRITIC_GRAD_NORM)
    }
    return {"scale": scale, "clip": clip, "seed": seed, "score": score, **norms, ALERT: ALERT in raised}


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="CartPole-v1")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--scales", type=float, nargs="+", default=[1.0, 1000.0])
    parser.add_argument("--again", action="store_true", help="discard the runs in the file")
    given = parser.parse_args()
    kept = KeptRuns(RESULTS / f"{given.env}.json", Task(given.env, given.steps), given.again)
    for seed in range(given.seeds):
        for scale in given.scales:
            for clip in ("together", "apart"):
                if not kept.has(scale=scale, clip=clip, seed=seed):
                    kept.add(train(Task(given.env, given.steps), scale, clip, seed))
    for scale in given.scales:
        for clip in ("together", "apart"):
            runs = [run for run in kept.runs if (run["scale"], run["clip"]) == (scale, clip)]
            scores, alerts = sorted(run["score"] for run in runs), sum(run[ALERT] for run in runs)
            shown = ", ".join(f"{score:.0f}" for score in scores)
            print(
                f"x{scale:g} {clip:8} mean {statistics.mean(scores):.1f} ({shown}); {ALERT} in {alerts} of {len(runs)}"
            )


if __name__ == "__main__":
    main()
