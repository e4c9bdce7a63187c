"""Run directories as `train` leaves them, without the training."""

import json
import math
from pathlib import Path
from typing import Any

from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.run_record import read_run
from surefoot.settings.layers import build_config, to_yaml

Record = dict[str, Any]
START = "surefoot 0.1.0, torch 2.9.0+cpu: CartPole-v1, seed 1, from step 0 to 100"
"""The first line of a process in the log."""


def record(index: int, seed: int = 1, every: int = 256) -> Record:
    """What an iteration writes, with numbers that wiggle by seed."""
    wiggle = math.sin(index * 0.7 + seed)
    return {
        "step": (index + 1) * every,
        "time": 1.7e9 + index,
        "time/iterations": index + 1.0,
        "time/time_elapsed": (index + 1) * 0.5,
        "time/fps": 2560.0 + 100 * wiggle,
        "time/rollout_s": 0.1,
        "time/learn_s": 0.3,
        "rollout/ep_rew_mean": 20.0 + 3 * index + wiggle,
        "rollout/ep_len_mean": 20.0 + 3 * index + wiggle,
        "train/approx_kl": 0.01 + 0.005 * wiggle,
        "train/clip_fraction": 0.1 + 0.05 * wiggle,
        "train/explained_variance": 0.5 + 0.2 * wiggle,
        "train/entropy_loss": -0.6,
        "train/value_loss": 5.0 + wiggle,
        "train/policy_gradient_loss": -0.01,
        "train/learning_rate": 0.001,
        "train/grad_norm": 2.0 + wiggle,
    }


def records(count: int, seed: int = 1) -> list[Record]:
    """As many iterations, evaluated every tenth."""
    found = [record(index, seed) for index in range(count)]
    for index in range(9, count, 10):
        found[index] |= {"eval/mean_reward": 100.0 + index + seed, "eval/std_reward": 5.0}
    return found


def write_evaluations(folder: Path, by_step: dict[int, list[float]], wins: list[float | None] | None = None) -> None:
    """The returns of single episodes, as evaluations leave them."""
    won = {} if wins is None else {"wins": wins}
    lines = [json.dumps({"step": step, "rewards": rewards, **won}) + "\n" for step, rewards in by_step.items()]
    (folder / "evaluations.jsonl").write_text("".join(lines), encoding="utf-8")


def append_log(run: ReportedRun, *lines: str) -> None:
    """Lines as a process of the run writes them."""
    with (run.path / "log.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"2026-01-01 12:00:00,000 INFO {line}\n" for line in lines)


def write_run(folder: Path, found: list[Record], settings: dict[str, Any] | None = None) -> ReportedRun:
    """Write it, and read it back."""
    folder.mkdir(parents=True)
    base = {"env.id": "CartPole-v1", "train.steps": len(found) * 256, "train.seed": 1}
    (folder / "config.yaml").write_text(to_yaml(build_config(base | (settings or {}))), encoding="utf-8")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
    run = read_run(folder)
    return ReportedRun(run.path, run.config, run.records, run.name)
