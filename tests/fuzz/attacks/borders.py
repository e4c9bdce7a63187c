"""Odd values from whoever Surefoot calls or shares a machine with: functions that act, pictures, OpenGL and locks."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.api import PPO
from surefoot.errors import SurefootError
from surefoot.training.hooks import Hook
from tests.fuzz.attacks.envs import ERRORS, SMALL
from tests.fuzz.commands import surefoot
from tests.fuzz.values import ANY, odd_array

SPACES: tuple[Callable[[], spaces.Space[Any]], ...] = (
    lambda: spaces.Discrete(3, start=4),
    lambda: spaces.Box(-1.0, 1.0, (2,)),
    lambda: spaces.MultiDiscrete([2, 3], start=[1, 1]),
    lambda: spaces.MultiBinary(2),
    lambda: spaces.Tuple((spaces.Discrete(3, start=4), spaces.Box(-1.0, 1.0, (2,)))),
    lambda: spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiBinary(2)}),
)
SIDES = (0, 1, 2, 3, 7, 16, 255, 256, 4001, 20000)
FILES = Path(__file__).parents[2] / "newcomer" / "files"
COMMANDS = (
    ("train", "CartPole-v1", "--seeds", "1,2", "--steps", "64"),
    ("sweep", FILES / "my_sweep.yaml"),
    ("population", FILES / "my_population.yaml"),
)


class Shown(gym.Env[Any, Any]):
    """Accepts only actions of its space, and shows what it is told to show."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Box(-1.0, 1.0, (2,))

    def __init__(self, action_space: spaces.Space[Any], picture: Any = None, render_mode: str | None = None) -> None:
        self.action_space, self.render_mode, self._picture, self._steps = action_space, render_mode, picture, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), f"{action!r} reached the env"
        self._steps += 1
        return np.zeros(2, np.float32), 0.0, self._steps == 3, False, {}

    def render(self) -> Any:
        return self._picture


def prepare(folder: Path) -> None:
    """Nothing is needed."""


def case(pick: random.Random, material: None, folder: Path) -> None:
    """One of them."""
    pick.choices((_function, _picture, _lock, _opengl), weights=(8, 8, 1, 1))[0](pick, folder)


def _function(pick: random.Random, folder: Path) -> None:
    """What it returns never reaches an env that it is no action of."""
    space, how = pick.choice(SPACES)(), pick.randrange(5)
    space.seed(pick.randrange(2**31))

    def act(obs: Any) -> Any:
        actions = [space.sample() for _ in range(len(obs))]
        if how == 0:
            raise pick.choice([error() for error in ERRORS if isinstance(error(), Exception)])
        if how == 1:
            return pick.choice(ANY)
        if isinstance(space, spaces.Dict | spaces.Tuple):
            keys = list(space.keys()) if isinstance(space, spaces.Dict) else list(range(len(space)))
            parts = {key: np.array([one[key] for one in actions]) for key in keys}
            if how == 2:
                parts[pick.choice(keys)] = pick.choice([odd_array(pick, (len(obs),)), *ANY])
            return parts if isinstance(space, spaces.Dict) else tuple(parts.values())
        array = np.array(actions)
        if how == 2:
            array = array.astype(float)
            array[pick.randrange(len(array))] = pick.choice((7, -9, 0.5, np.nan, np.inf, 1e30))
        return array

    class Acts(Hook):
        def begin(self) -> None:
            self.run.actors.add("f", act)
            self.run.actors.assign([0], "f")

    with suppress(SurefootError):
        PPO(lambda: Shown(space), **SMALL).learn(32, hooks=[Acts()])


def _picture(pick: random.Random, folder: Path) -> None:
    """A video of any size, or a typed error and no file."""
    shape = (pick.choice(SIDES), pick.choice(SIDES), *pick.choice([(3,), (1,), (4,), (), (2,)]))
    if np.prod(shape) > 10**7:
        return
    drawing = pick.choice([np.zeros(shape, np.uint8), np.zeros(shape), *ANY])
    target = folder / f"video.{pick.choice(['mp4', 'gif'])}"
    try:
        PPO(lambda render_mode=None: Shown(spaces.Discrete(2), drawing, render_mode), **SMALL).record(
            target, max_steps=2
        )
    except SurefootError:
        assert not list(folder.glob("*video*")), "half a video"


def _lock(pick: random.Random, folder: Path) -> None:
    """A pipe, a folder or a link as the lock of several runs."""
    several = folder / "several"
    several.mkdir()
    (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path))[pick.randrange(3)](several / "lock")
    assert surefoot(*pick.choice(COMMANDS), "--run-dir", several) == 2


def _opengl(pick: random.Random, folder: Path) -> None:
    """Whatever the variable names, only what draws may mind."""
    value = pick.choice(["osmesa", "egl", "glfw", "bogus", "off", "1", "x" * 1000, "EGL ", "\x1b[2J"])
    small = ("--rollout.num_envs", "2", "--rollout.num_steps", "8", "--ppo.batch_size", "16", "--steps", "16")
    run = folder / "run"
    for arguments, codes in (
        (("train", "Hopper-v5", "--run-dir", run, *small), (0,)),
        (("watch", run, "--video", folder / "a.gif", "--max-steps", "1"), (0, 2)),
    ):
        command = [sys.executable, "-m", "surefoot", *map(str, arguments)]
        done = subprocess.run(
            command, env=os.environ | {"MUJOCO_GL": value}, capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode in codes, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
