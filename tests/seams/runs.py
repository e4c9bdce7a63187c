"""Runs of an example in a folder outside the package: from YAML, from flags, and resumed in a new process."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Finished, surefoot
from tests.cli.runs import QUIET
from tests.compiled import compiled
from tests.seams.pages import BY_MODULE, EXAMPLES

ITERATION = 32
TINY = (
    *("--rollout.num_envs", 4, "--rollout.num_steps", 8, "--ppo.batch_size", 16, "--ppo.epochs", 2),
    *("--policy.hidden", 4, "--train.eval_episodes", 0, "--train.checkpoint_every", ITERATION),
    *("--train.keep_checkpoints", 20, "--steps", 5 * ITERATION, "--rollout.workers", 1, *QUIET),
)


def bring(folder: Path, modules: Iterable[str]) -> None:
    """Copy example files into the folder; those in C++ as a library with its twin."""
    for module in modules:
        shutil.copy(EXAMPLES / f"{module}.py", folder)
        if (EXAMPLES / f"{module}.cpp").exists():
            compiled(EXAMPLES / f"{module}.cpp", folder / f"{module}.so")


def train_from_yaml(module: str, run: Path, *arguments: object) -> Finished:
    """The first command of the page, with its YAML file; in the current folder."""
    example = BY_MODULE[module]
    Path(example.yaml_name).write_text(example.yaml, encoding="utf-8")
    return surefoot(*example.with_file, "--run-dir", run, *TINY, *arguments).succeeded()


def train_from_flags(module: str, run: Path, *arguments: object) -> Finished:
    """The second command of the page; in the current folder."""
    return surefoot(*BY_MODULE[module].with_flags, "--run-dir", run, *TINY, *arguments).succeeded()


def resume_from(run: Path, step: int, copy: Path, *arguments: object) -> Finished:
    """Resume a copy of a run, in a new process, as if it had been killed after a step."""
    shutil.copytree(run, copy)
    for path in RunDirectory(copy).saved():
        if read_checkpoint(path)["progress"]["step"] > step:
            path.unlink()
    return surefoot("resume", copy, *arguments).succeeded()


def rest_of(records: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """The records after a step, but for alerts, which begin again with each process."""
    alerts = ("warn/",)
    later = [record for record in records if record["step"] > step]
    return [{key: value for key, value in record.items() if not key.startswith(alerts)} for record in later]
