"""Small real runs, and what they leave."""

import json
from pathlib import Path
from typing import Any

from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Finished, surefoot

QUIET = ("--log.console", "plain", "--log.tensorboard", "false")
TINY = (
    *("--rollout.num_envs", 2, "--rollout.num_steps", 16, "--ppo.batch_size", 16, "--ppo.epochs", 2),
    *("--policy.hidden", 4, "--train.eval_episodes", 0, *QUIET),
)
"""Iterations of 32 steps."""


def train(target: str, run: Path, *arguments: object) -> Finished:
    return surefoot("train", target, "--run-dir", run, *arguments).succeeded()


def newest(run: Path) -> dict[str, Any]:
    """The state in the newest checkpoint."""
    return read_checkpoint(RunDirectory(run).saved()[0])


def records(run: Path) -> list[dict[str, float]]:
    """The metrics, but for what the clock and the machine say."""
    lines = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if not key.startswith(("time", "system"))} for line in lines]


def column(run: Path, name: str) -> list[float]:
    return [record[name] for record in records(run) if name in record]


def saved_steps(run: Path) -> list[int]:
    return [int(path.stem.removeprefix("step_")) for path in RunDirectory(run).saved()]
