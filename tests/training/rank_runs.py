"""Run by every rank: complete runs that are stopped, resumed, and disturbed in only one of the processes."""

import json
import os
import resource
import signal
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.data.records import IterationReport
from surefoot.errors import RankError
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.run import Run
from surefoot.settings.layers import build_config
from surefoot.training.alike import check_settings
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.hooks import Hook
from surefoot.training.run_directory import RunDirectory

ITERATIONS, STEPS = 6, 5 * 24
SETTINGS = {
    "env.id": "Pendulum-v1",
    "rollout.num_envs": 5,
    "rollout.num_steps": 24,
    "ppo.epochs": 2,
    "ppo.batch_size": 30,
    "policy.hidden": [8],
    "policy.memory": {"kind": "lstm", "hidden_size": 4},
    "normalize.obs": True,
    "normalize.returns": True,
    "normalize.reward": True,
    "train.steps": ITERATIONS * STEPS,
    "train.checkpoint_every": 4 * STEPS,
    "train.eval_every": 2 * STEPS,
    "train.eval_episodes": 1,
    "log.tensorboard": False,
    "log.console": "off",
}


class OneRank(Hook):
    """Does something at some iteration in one process only."""

    def __init__(self, rank: int, **actions: Any) -> None:
        super().__init__()
        self._rank, self._actions = rank, actions

    def after_iteration(self, report: IterationReport) -> None:
        action = self._actions.get(f"at{report.progress.iteration}")
        if action is not None and self.run.ranks.rank == self._rank:
            action(self.run)


def stop_signal(run: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def fill_disk(run: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))


def free_disk(run: Any) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def one_run(path: Path, ranks: Ranks, hook: Hook | None = None, source: Path | None = None) -> tuple[int, bool]:
    """Train in a directory, from the start or from a checkpoint; the exit code, and whether it resumed exactly."""
    config = build_config(SETTINGS)
    directory = RunDirectory(path) if ranks.is_first else None
    with closing(build_env(config, ranks=ranks)) as env, directory or nullcontext():
        specs = Specs(env.obs_spec, env.action_spec)
        trainer = build_trainer(config, env, build_policy(config, specs), ranks)
        run = Run(trainer, config, specs, None, directory, [hook] if hook else [], ranks)
        if directory is not None:
            directory.write_config(config)
        if source is not None:
            run.load_state(read_checkpoint(source), source)
        return run.train()[1], trainer.collector.rows.is_exact


def checkpoint(path: Path, iteration: int) -> Path:
    return path / "checkpoints" / f"step_{iteration * STEPS:012d}.safetensors"


def refusals(folder: Path, ranks: Ranks) -> dict[str, str]:
    """What is refused if the processes have other settings, files or modules; every process works in its own folder."""
    own = folder / f"of process {ranks.rank}"
    own.mkdir()
    os.chdir(own)
    sys.path.insert(0, str(own))
    home, os.environ["HOME"] = os.environ.get("HOME", ""), str(own)
    for name in ("prices.csv", "own_envs.py", "model.safetensors", "prices", "data/levels/one", "same/level"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("" if name == "same/level" else f"# {ranks.rank}")
    by_rank: dict[str, dict[str, Any]] = {
        "gamma": {"ppo.gamma": (0.9, 0.95)[ranks.rank]},
        "several": {"train.seed": ranks.rank, "env.kwargs": {"g": 9.8 + ranks.rank}, "env.max_episode_steps": 10},
        "file": {"env.kwargs": {"file": "prices.csv"}},
        "home": {"env.kwargs": {"file": "~/prices.csv"}},
        "no suffix": {"env.kwargs": {"file": "prices"}},
        "folder": {"env.kwargs": {"folder": "data"}},
        "same folder": {"env.kwargs": {"folder": "same", "other": "."}},
        "module": {"env.id": "own_envs:Own-v0"},
        "model": {},
        "how": {"train.threads": 1 + ranks.rank, "rollout.workers": 1 + ranks.rank, "log.log_every": 1 + ranks.rank},
    }
    found = {}
    for name, changes in by_rank.items():
        try:
            check_settings(
                ranks, build_config(SETTINGS, changes), Path("model.safetensors") if name == "model" else None
            )
            found[name] = ""
        except RankError as error:
            found[name] = str(error)
    os.chdir(folder)
    os.environ["HOME"] = home
    return found


def all_runs(folder: Path, ranks: Ranks) -> None:
    """One after the other; every process writes how its runs ended."""
    ended = {
        "whole": one_run(folder / "whole", ranks),
        "stopped": one_run(folder / "stopped", ranks, OneRank(1, at3=stop_signal)),
        "resumed": one_run(folder / "stopped", ranks, source=checkpoint(folder / "stopped", 3)),
        "asked": one_run(
            folder / "asked", ranks, OneRank(1, at1=lambda run: run.save(), at3=lambda run: run.stop("enough"))
        ),
        "full disk": one_run(folder / "full disk", ranks, OneRank(0, at4=fill_disk, at5=free_disk)),
    }
    if ranks.is_first:
        ended["alone"] = one_run(folder / "alone", ALONE, source=checkpoint(folder / "stopped", 3))
        ended["from start alone"] = one_run(folder / "from start alone", ALONE)
    ranks.gather(None)
    ended["from one"] = one_run(folder / "from one", ranks, source=checkpoint(folder / "from start alone", 4))
    (folder / f"refusals.{ranks.rank}.json").write_text(json.dumps(refusals(folder, ranks)))
    (folder / f"ended.{ranks.rank}.json").write_text(json.dumps(ended))
