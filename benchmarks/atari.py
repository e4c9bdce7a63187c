"""Pong from pixels: one training run, its curve, its wall clock and a final evaluation of 20 games.

    python -m benchmarks.atari                     trains envpool:Pong-v5 with its preset, an hour or more
    python -m benchmarks.atari --run runs/pong     takes a run that is already finished

Writes benchmarks/results/atari: the numbers as JSON, the curve as PNG, and a README.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

from benchmarks.learning import EPISODES, surefoot
from surefoot.benchmark.report import describe_machine, machine
from surefoot.cli.trained import load_agent

RESULTS = Path(__file__).parent / "results" / "atari"
TASK, GATE, POINTS = "envpool:Pong-v5", 18.0, 200
"""What is trained, the score that it must reach, and the number of points of its curve."""


def trained(folder: Path, seed: int, settings: list[str]) -> Path:
    """A new run."""
    surefoot("train", TASK, "--seed", str(seed), "--run-dir", str(folder), "--log.console", "off", *settings)
    return folder


def result_of(run: Path) -> dict[str, Any]:
    """Settings, curve and final score of a run."""
    agent, _ = load_agent(run, None, trust=True)
    scored = agent.evaluate(EPISODES, seed=1000)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    curve = _curve(records)
    waits = [record["system/cpu_wait"] for record in records if "system/cpu_wait" in record]
    return {
        "task": config["env"]["id"],
        "seed": config["train"]["seed"],
        "threads": config["train"]["threads"],
        "steps": int(records[-1]["step"]),
        "seconds": curve[-1][2],
        "cpu_wait": round(sum(waits) / len(waits), 3) if waits else None,
        "mean_reward": scored.mean_reward,
        "rewards": list(scored.rewards),
        "config": {name: config[name] for name in ("env", "policy", "rollout", "ppo", "optimizer", "schedules")},
        "machine": machine(),
        "curve": curve,
    }


def _curve(records: list[dict[str, Any]]) -> list[list[float]]:
    """(step, return, seconds) points, thinned out; the clock of a resumed run starts again, so parts are added up."""
    points, before, last = [], 0.0, 0.0
    for record in records:
        now = record["time/time_elapsed"]
        before, last = before + (last if now < last else 0.0), now
        if "rollout/ep_rew_mean" in record:
            points.append([record["step"], round(record["rollout/ep_rew_mean"], 2), round(before + now, 1)])
    stride = max(1, len(points) // POINTS)
    return [*points[:-1:stride], points[-1]]


def page(found: dict[str, Any]) -> str:
    """The README."""
    games = ", ".join(f"{score:.0f}" for score in found["rewards"])
    reached = "reached" if found["mean_reward"] >= GATE else "missed"
    minutes, wait, threads = found["seconds"] / 60, found["cpu_wait"], found["threads"]
    on = f"on {threads} thread{'s' * (threads > 1)}" if threads else "on all cores"
    command = f"python -m benchmarks.atari{f' --set=--train.threads={threads}' if threads else ''}"
    first = next((point for point in found["curve"] if point[1] >= GATE), None)
    when = (
        f" The last 100 games reached {GATE:.0f} after {first[0]:,} steps, {first[2] / 60:.0f} minutes."
        if first
        else ""
    )
    busy = "" if wait is None else f" The process waited for a core {wait:.0%} of the time: others used the machine."
    return "\n".join(
        [
            "# Pong from pixels",
            "",
            f"{describe_machine(found['machine'])}.",
            "",
            f"`{found['task']}`, seed {found['seed']}, {found['steps']:,} steps of the agent (4 frames each) in"
            f" {minutes:,.0f} minutes of wall clock {on}.{when}{busy}",
            "",
            f"Final policy, deterministic, {len(found['rewards'])} whole games, unclipped: mean"
            f" **{found['mean_reward']:.2f}** (must reach {GATE:.0f}: {reached}).",
            "",
            f"Games: {games}.",
            "",
            "![Return of the last 100 training episodes over steps](Pong.png)",
            "",
            f"Reproduce with `{command}`; settings and curve are in [Pong.json](Pong.json).",
            "",
        ]
    )


def draw(found: dict[str, Any], file: Path) -> None:
    """The curve, over steps and over minutes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3), sharey=True)
    steps, returns, seconds = zip(*found["curve"], strict=True)
    for axis, values, label in (
        (axes[0], [step / 1e6 for step in steps], "million steps"),
        (axes[1], [second / 60 for second in seconds], "minutes"),
    ):
        axis.plot(values, returns)
        axis.axhline(GATE, linestyle=":", color="gray")
        axis.set_xlabel(label)
    axes[0].set_ylabel("return (last 100 games)")
    figure.suptitle(f"{found['task']}: final evaluation {found['mean_reward']:.1f}")
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def main() -> None:
    """Train unless a run is given, evaluate, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a finished run, instead of training a new one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[], help="more arguments of surefoot train, as --key=value")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    found = result_of(arguments.run or trained(output / "run", arguments.seed, arguments.set))
    (output / "Pong.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draw(found, output / "Pong.png")
    (output / "README.md").write_text(page(found), encoding="utf-8")
    print(f"{found['task']}: {found['mean_reward']:.2f} after {found['steps']:,} steps, {found['seconds']:.0f} s")


if __name__ == "__main__":
    main()
