"""Objectives with CVaR change what agents do: the corridor, one-step investors, and a frontier over many steps.

    python -m benchmarks.risk                     everything
    python -m benchmarks.risk corridor investor   some of it

Every finished run is kept in benchmarks/results/risk/, and a later call continues with those that are missing. Each run
is `surefoot train`, then `surefoot evaluate` of the deterministic policy.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.kept_runs import KeptRuns, Run
from benchmarks.learning import surefoot
from surefoot.benchmark.report import machine
from surefoot.envs.tasks.market_answers import best_exposure, limited_exposure, student_t_tail_factor
from surefoot.statistics.risk import cvar

RESULTS = Path(__file__).parent / "results" / "risk"
ALPHA = 0.1
INVESTOR: dict[str, Any] = {
    **{"process": "student_t", "degrees": 5, "drift": 0.5, "volatility": 0.5, "exposure_cost": 0.5},
    **{"turnover_cost": 0, "horizon": 1, "window": 0, "low": 0, "high": 2, "bankrupt_below": -1e6},
}
CAUTIOUS: dict[str, Any] = INVESTOR | {"degrees": 7, "drift": 0.3, "volatility": 0.6, "exposure_cost": 0.4}
"""Its best exposure is smaller than the usual noise."""
CAUTIOUS_ALPHA, CAUTIOUS_BETA = 0.07, 0.15
QUIET = {"fade_noise": {"start": 0.37, "end": 0.05, "until": 0.15}}
"""Hooks that lower the noise before it decides the answer."""
QUIET_BETA = "beta 0.5, warmup 10, fade_noise"
MANY_STEPS: dict[str, Any] = {
    **{"process": "student_t", "degrees": 5, "drift": 0.02, "volatility": 0.1, "exposure_cost": 0.02},
    **{"turnover_cost": 0, "horizon": 16, "window": 0, "low": 0, "high": 2, "bankrupt_below": -1e6},
}


@dataclass(frozen=True)
class Task:
    """Settings that all runs share, those that differ by name, and the seeds."""

    name: str
    seeds: int
    episodes: int
    settings: dict[str, Any]
    variants: dict[str, dict[str, Any]]
    """Settings of the estimator by name."""
    noisy: tuple[str, ...] = ()
    """Variants without the hooks of the settings."""


def market(kwargs: dict[str, Any], steps: int, rows: int, length: int, batch: int) -> dict[str, Any]:
    """A small policy for a market without memory; its gain so far and the time left are in the observation."""
    return {
        "env": {"id": "Market-v0", "kwargs": kwargs, "truncation_as_termination": True},
        "policy": {"memory": "none", "hidden": [32, 32], "distribution": {"kind": "gaussian", "log_std": -1.0}},
        "rollout": {"num_envs": rows, "num_steps": length},
        "ppo": {"batch_size": batch, "epochs": 4, "gamma": 1.0, "gae_lambda": 0.95, "entropy_coef": 0.0},
        "optimizer": {"lr": 0.003},
        "schedules": {"lr": "linear"},
        "normalize": {"obs": False, "returns": True},
        "train": {"steps": steps},
    }


def mix(beta: float, warmup: int = 0, alpha: float = ALPHA) -> dict[str, Any]:
    """(1 - beta) mean + beta CVaR."""
    return {"kind": "risk", "alpha": alpha, "beta": beta, "window": 8192} | ({"warmup": warmup} if warmup else {})


TASKS = [
    Task(
        "corridor",
        5,
        200,
        {"env": {"id": "RiskyCorridor-v0"}, "normalize": {"returns": True}, "train": {"steps": 60_000}},
        {"mean": {"kind": "gae"}, "beta 0.9": mix(0.9), "beta 1": mix(1.0)},
    ),
    Task(
        "investor",
        3,
        2000,
        market(INVESTOR, 4_000_000, 1024, 32, 8192) | {"hooks": QUIET},
        {
            "beta 0": mix(0.0),
            "beta 0.25": mix(0.25),
            "beta 0.4": mix(0.4),
            "beta 0.5": mix(0.5),
            "ES at most 0.4": {"kind": "risk", "alpha": ALPHA, "limit": -0.4, "window": 8192},
            QUIET_BETA: mix(0.5, warmup=10),
        },
        noisy=("beta 0", "beta 0.25", "beta 0.4", "beta 0.5", "ES at most 0.4"),
    ),
    Task(
        "noise",
        3,
        2000,
        market(CAUTIOUS, 4_000_000, 1024, 32, 8192) | {"hooks": QUIET},
        {
            "std from 0.37": mix(CAUTIOUS_BETA, alpha=CAUTIOUS_ALPHA),
            "warmup 30": mix(CAUTIOUS_BETA, warmup=30, alpha=CAUTIOUS_ALPHA),
            "warmup 10, fade_noise": mix(CAUTIOUS_BETA, warmup=10, alpha=CAUTIOUS_ALPHA),
        },
        noisy=("std from 0.37", "warmup 30"),
    ),
    Task(
        "frontier",
        3,
        4000,
        market(MANY_STEPS, 1_000_000, 128, 32, 1024),
        {f"beta {beta:g}": mix(beta) for beta in (0.0, 0.1, 0.2, 0.3, 0.5)},
    ),
]


def run(task: Task, variant: str, seed: int) -> Run:
    """Train one seed and evaluate its deterministic policy."""
    settings = task.settings | {"ppo": {**task.settings.get("ppo", {}), "estimator": task.variants[variant]}}
    if variant in task.noisy:
        settings["hooks"] = {}
    fixed = ["--log.console", "off", "--train.eval_episodes", "0", "--train.threads", "1", "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(settings), encoding="utf-8")
        where = [task.settings["env"]["id"], "--config", str(config)]
        surefoot("train", *where, "--run-dir", f"{folder}/run", *fixed)
        arguments = ["--episodes", str(task.episodes), "--seed", "1000", "--alpha", str(ALPHA), "--json"]
        scored = json.loads(surefoot("evaluate", f"{folder}/run", *arguments))
    metrics = {name: metric["mean"] for name, metric in scored["metrics"].items()}
    worst = float(cvar(scored["rewards"], ALPHA))
    print(
        f"{task.name}, {variant}, seed {seed}: mean {scored['mean_reward']:.3f}, CVaR {worst:.3f}, {metrics}",
        flush=True,
    )
    return {"variant": variant, "seed": seed, "mean": scored["mean_reward"], "cvar": worst, "metrics": metrics}


def of(runs: Sequence[Run], variant: str) -> list[Run]:
    """The runs of a variant."""
    return [one for one in runs if one["variant"] == variant]


def exposures(runs: Sequence[Run]) -> str:
    """Exposures of the modes, per seed."""
    return ", ".join(f"{one['metrics']['position']:.3f}" for one in runs)


def corridor_table(runs: Sequence[Run]) -> list[str]:
    """Which way the agents take; some never arrive."""
    lines = ["| objective | share of the risky way, per seed (-: it walks to and fro) |", "|---|---|"]
    for variant in TASKS[0].variants:
        taken = [one["metrics"]["risky"] for one in of(runs, variant)]
        shares = ", ".join("-" if share is None else f"{share:.2f}" for share in taken)
        lines.append(f"| {variant} | {shares} |")
    return lines


def investor_table(runs: Sequence[Run]) -> list[str]:
    """Exposures beside the closed form."""
    k = student_t_tail_factor(ALPHA, degrees=5)
    answers = {f"beta {beta:g}": best_exposure(0.5, 0.5, 0.5, k, weight=beta) for beta in (0.0, 0.25, 0.4, 0.5)}
    answers[QUIET_BETA] = answers["beta 0.5"]
    answers["ES at most 0.4"] = limited_exposure(0.5, 0.5, 0.5, k, limit=0.4).exposure
    lines = ["| objective | closed form | exposure of the mode, per seed |", "|---|---|---|"]
    for variant in TASKS[1].variants:
        lines.append(f"| {variant} | {answers[variant]:.3f} | {exposures(of(runs, variant))} |")
    return lines


def noise_table(runs: Sequence[Run]) -> list[str]:
    """Exposures of the cautious investor beside the closed form, with and without less noise."""
    k = student_t_tail_factor(CAUTIOUS_ALPHA, CAUTIOUS["degrees"])
    drift, volatility, cost = (CAUTIOUS[name] for name in ("drift", "volatility", "exposure_cost"))
    answer = best_exposure(drift, volatility, cost, k, weight=CAUTIOUS_BETA)
    lines = [
        f"Alpha {CAUTIOUS_ALPHA}, beta {CAUTIOUS_BETA}: the closed form is {answer:.3f}.",
        *("", "| noise | exposure of the mode, per seed |", "|---|---|"),
    ]
    for variant in TASKS[2].variants:
        lines.append(f"| {variant} | {exposures(of(runs, variant))} |")
    return lines


def constant_exposures(draws: int = 200_000) -> dict[float, tuple[float, float]]:
    """Mean and CVaR of constant exposures in the market of many steps, by simulation."""
    random, horizon = np.random.default_rng(0), MANY_STEPS["horizon"]
    noise = random.standard_t(5, (draws, horizon)) / np.sqrt(5 / 3)
    gain = (MANY_STEPS["drift"] + MANY_STEPS["volatility"] * noise).sum(axis=1)
    found = {}
    for exposure in np.round(np.arange(0, 1.51, 0.02), 2):
        returns = exposure * gain - horizon * MANY_STEPS["exposure_cost"] / 2 * exposure**2
        found[float(exposure)] = (float(returns.mean()), float(cvar(returns, ALPHA)))
    return found


def frontier_table(runs: Sequence[Run]) -> list[str]:
    """The objective of every agent beside that of the best constant exposure."""
    constant = constant_exposures()
    lines = [
        "| beta | best constant exposure: objective, mean, CVaR | agents: objective | mean | CVaR | exposure |",
        "|---|---|---|---|---|---|",
    ]
    for variant, settings in TASKS[3].variants.items():
        own = of(runs, variant)
        if not own:
            continue
        beta = settings["beta"]
        value = {w: (1 - beta) * mean + beta * worst for w, (mean, worst) in constant.items()}
        best = max(value, key=lambda w: value[w])
        told = [
            ", ".join(f"{(1 - beta) * one['mean'] + beta * one['cvar']:.3f}" for one in own),
            ", ".join(f"{one['mean']:.3f}" for one in own),
            ", ".join(f"{one['cvar']:.3f}" for one in own),
            ", ".join(f"{one['metrics']['position']:.2f}" for one in own),
        ]
        mean, worst = constant[best]
        lines.append(f"| {beta:g} | {best:.2f}: {value[best]:.3f}, {mean:.3f}, {worst:.3f} | {' | '.join(told)} |")
    return lines


def plot_frontier(runs: Sequence[Run], file: Path) -> None:
    """Mean against CVaR: constant exposures as a line, agents as points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    means, worsts = zip(*constant_exposures().values(), strict=True)
    axes.plot(worsts, means, color="gray", label="constant exposure, 0 to 1.5")
    for index, variant in enumerate(TASKS[3].variants):
        own = of(runs, variant)
        axes.scatter([one["cvar"] for one in own], [one["mean"] for one in own], color=f"C{index}", label=variant)
    axes.set(
        title="Market-v0, 16 steps: agents by the weight of CVaR",
        xlabel=f"CVaR of the worst {ALPHA:.0%} of episodes",
        ylabel="mean return",
    )
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


TABLES = {"corridor": corridor_table, "investor": investor_table, "noise": noise_table, "frontier": frontier_table}


def write_readme() -> None:
    """All results as Markdown."""
    lines = ["# Objectives with CVaR", "", f"CVaR at {ALPHA}. Repeat with `python -m benchmarks.risk`.", ""]
    for task in TASKS:
        file = RESULTS / f"{task.name}.json"
        if file.exists():
            lines += [
                f"## {task.name}",
                "",
                *TABLES[task.name](json.loads(file.read_text(encoding="utf-8"))["runs"]),
                "",
            ]
    (RESULTS / "README.md").write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    """Run the named tasks, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="corridor, investor, noise or frontier; all if none is named")
    parser.add_argument("--again", action="store_true", help="start over")
    arguments = parser.parse_args()
    unknown = set(arguments.tasks) - {task.name for task in TASKS}
    if unknown:
        parser.error(f"unknown tasks: {', '.join(sorted(unknown))}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        if arguments.tasks and task.name not in arguments.tasks:
            continue
        kept = KeptRuns(RESULTS / f"{task.name}.json", task, arguments.again)
        for seed in range(task.seeds):
            for variant in task.variants:
                if not kept.has(variant=variant, seed=seed):
                    kept.add(run(task, variant, seed))
        means = {name: statistics.fmean(one["mean"] for one in of(kept.runs, name)) for name in task.variants}
        kept.write({"command": f"python -m benchmarks.risk {task.name}", "means": means, "machine": machine()})
        if task.name == "frontier":
            plot_frontier(kept.runs, RESULTS / "frontier.png")
        write_readme()


if __name__ == "__main__":
    main()
