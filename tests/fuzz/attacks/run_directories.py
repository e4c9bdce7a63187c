"""Damaged run directories: `resume` goes on or says why not, and nothing of the user's is touched."""

import os
import random
import shutil
from pathlib import Path

from tests.fuzz.commands import surefoot
from tests.fuzz.values import mutated

TINY = (
    *(
        "--rollout.num_envs",
        2,
        "--rollout.num_steps",
        8,
        "--ppo.batch_size",
        8,
        "--ppo.epochs",
        1,
        "--policy.hidden",
        4,
    ),
    *("--train.eval_episodes", 0, "--log.tensorboard", "false", "--log.console", "plain"),
)
TREASURE = b"somebody needs this"


def prepare(folder: Path) -> Path:
    """A run with three checkpoints."""
    run = folder / "run"
    code = surefoot("train", "CartPole-v1", "--run-dir", run, *TINY, "--steps", 48, "--train.checkpoint_every", 16)
    assert code == 0
    return run


def case(pick: random.Random, material: Path, folder: Path) -> None:
    """A few things go wrong at once; then the run is resumed, and perhaps trained anew in the same place."""
    run, treasure = folder / "run", folder / "treasure"
    shutil.copytree(material, run)
    treasure.write_bytes(TREASURE)
    own = [run / name for name in (".notes.tmp", "notes.txt", "checkpoints/.mine.safetensors.tmp")]
    for path in own:
        path.write_bytes(TREASURE)
    for _ in range(pick.choice([1, 1, 2, 4])):
        _damage(pick, run, treasure, own)
    surefoot("resume", run, "--steps", 64)
    if pick.random() < 0.2:
        surefoot("train", "CartPole-v1", "--run-dir", run, *TINY, "--steps", 16)
    assert treasure.read_bytes() == TREASURE
    assert all(path.read_bytes() == TREASURE for path in own)


def _damage(pick: random.Random, run: Path, treasure: Path, own: list[Path]) -> None:
    files = [path for path in run.rglob("*") if path.is_file() and path not in own]
    names = ["lock", "log.txt", "metrics.jsonl", "config.yaml", "best.safetensors", ".x.tmp", "checkpoints/.x.tmp"]
    target = pick.choice([*files, *(run / name for name in names)])
    if target.is_file() and not target.is_symlink() and pick.random() < 0.4:
        target.write_bytes(mutated(pick, target.read_bytes()))
        return
    shutil.rmtree(target, ignore_errors=True) if target.is_dir() and not target.is_symlink() else target.unlink(True)
    match pick.randrange(6):
        case 0:
            target.mkdir()
        case 1:
            target.symlink_to(treasure)
        case 2:
            target.symlink_to(run / "missing")
        case 3:
            target.write_bytes(b"")
        case 4:
            os.mkfifo(target)
        case _:
            pass
