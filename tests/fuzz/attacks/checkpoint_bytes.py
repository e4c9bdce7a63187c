"""Checkpoints with damaged bytes: refused with a typed error, or the same state as before."""

import random
from pathlib import Path
from typing import Any

from surefoot.api import PPO
from surefoot.errors import CheckpointError
from surefoot.training.checkpoint import read_checkpoint
from tests.fuzz.values import mutated
from tests.training.states import assert_same


def prepare(folder: Path) -> tuple[bytes, dict[str, Any]]:
    """A sound checkpoint and its state."""
    path = folder / "sound.safetensors"
    agent = PPO("CartPole-v1", num_envs=2, num_steps=8, batch_size=8, epochs=1, hidden=4)
    agent.learn(16).save(path)
    return path.read_bytes(), read_checkpoint(path)


def case(pick: random.Random, material: tuple[bytes, dict[str, Any]], folder: Path) -> None:
    """Read what is left of it."""
    sound, state = material
    path = folder / "damaged.safetensors"
    # Half of the damage hits the header, which is small.
    start = pick.choice([0, 0, 8, len(sound) // 2])
    path.write_bytes(sound[:start] + mutated(pick, sound[start:]))
    try:
        found = read_checkpoint(path)
    except CheckpointError:
        return
    assert_same(found, state)
