"""Environments that misbehave by a grammar: in what they return, raise or save, at a random moment of their life.

Training goes on where the meaning is clear. Otherwise it ends with a typed error, and what was learned is saved.
"""

import math
import random
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from surefoot.api import PPO
from surefoot.errors import SurefootError
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.fuzz.values import ANY, BadArray, odd_array

SMALL = {
    "num_envs": 2,
    "num_steps": 8,
    "batch_size": 8,
    "epochs": 1,
    "hidden": 4,
    "eval_episodes": 0,
    "tensorboard": False,
}
ITERATION = 16
SPACES: tuple[Callable[[], spaces.Space[Any]], ...] = (
    lambda: spaces.Box(-1.0, 1.0, (3,)),
    lambda: spaces.Box(0, 255, (8, 8, 1), np.uint8),
    lambda: spaces.Discrete(5, start=2),
    lambda: spaces.MultiDiscrete([2, 3]),
    lambda: spaces.MultiBinary(3),
    lambda: spaces.Dict({"a": spaces.Box(-1.0, 1.0, (2,)), "b": spaces.Discrete(3)}),
    lambda: spaces.Tuple((spaces.Box(-1.0, 1.0, (2,)), spaces.Discrete(3))),
    # Odd ones.
    lambda: spaces.Dict({"a/b": spaces.Box(-1.0, 1.0, (1,)), "a": spaces.Dict({"b": spaces.Box(-1.0, 1.0, (1,))})}),
    lambda: spaces.Dict({}),
    lambda: spaces.Box(-1.0, 1.0, (0,)),
    lambda: spaces.Box(-1.0, 1.0, ()),
    lambda: spaces.Text(5),
    lambda: spaces.Sequence(spaces.Discrete(2)),
    lambda: spaces.Discrete(1),
    lambda: spaces.Box(0, 255, (0, 0, 3), np.uint8),
    lambda: spaces.Discrete(10**12),
)
ACTIONS: tuple[Callable[[], spaces.Space[Any]], ...] = (
    lambda: spaces.Discrete(3),
    lambda: spaces.Box(-1.0, 1.0, (2,)),
    lambda: spaces.MultiDiscrete([2, 3]),
    lambda: spaces.MultiBinary(2),
    lambda: spaces.Discrete(1),
    lambda: spaces.Box(-np.inf, np.inf, (1,)),
    lambda: spaces.Box(-1.0, 1.0, (0,)),
    lambda: spaces.Dict({"a": spaces.Discrete(2)}),
    lambda: spaces.Tuple((spaces.Discrete(2, start=-1), spaces.Box(-1.0, 1.0, (2,)))),
    lambda: spaces.Tuple((spaces.Discrete(2**26), spaces.MultiBinary(2))),
    lambda: spaces.Tuple(()),
    lambda: spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)}), "": spaces.Text(3)}),
)


class UnspeakableError(Exception):
    """Its message cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


class BadDict(dict[str, Any]):
    """Looks like an info until it is read."""

    def get(self, *args: Any) -> Any:
        raise RuntimeError("no entry")

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("no entry")

    def __contains__(self, key: object) -> bool:
        raise RuntimeError("no entry")


ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: RuntimeError("broken"),
    lambda: SystemExit(0),
    lambda: SystemExit("bye"),
    lambda: KeyboardInterrupt(),
    lambda: GeneratorExit(),
    lambda: MemoryError(),
    lambda: StopIteration(),
    lambda: RecursionError("deep"),
    lambda: BaseException("base"),
    lambda: OSError(28, "No space left on device"),
    lambda: BrokenPipeError(),
    lambda: UnspeakableError(),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad\nline"),
)
REWARDS: tuple[Any, ...] = (
    *(*ANY, 1j, Decimal(1), Fraction(1, 3), np.float32("nan"), np.array([1.0]), np.array([[1.0]]), np.zeros(0)),
    *(np.array([1.0, 2.0]), np.array("x"), np.datetime64("2020-01-01"), torch.tensor(1.0), BadArray(), object()),
)
FLAGS: tuple[Any, ...] = (
    *ANY,
    0.5,
    2,
    "False",
    np.array([True]),
    np.array([True, False]),
    np.bool_(1),
    [[1], [1, 2]],
    BadArray(),
)
INFOS: tuple[Any, ...] = (
    *ANY,
    BadDict(),
    {"action_mask": None},
    {"action_mask": [0, -math.inf]},
    {"final_observation": 1},
    *({"is_success": odd} for odd in (BadArray(), object(), 10**400, [[1], [1, 2]], "yes")),
    {"action_mask": {"a": [0, 0]}},
    {"action_mask": (None, BadArray())},
)


MEDDLING: tuple[Callable[[], Any], ...] = (
    lambda: torch.set_default_dtype(torch.float64),
    lambda: torch.set_default_device("meta"),
    lambda: torch.set_grad_enabled(False),
    lambda: np.seterr(all="raise"),
)
"""What an env may change for the whole process: training does not notice."""


class OddEnv(gym.Env[Any, Any]):
    """Behaves well but for one call, which is answered by a mistake drawn beforehand."""

    def __init__(self, pick: random.Random, obs: spaces.Space[Any], action: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = obs, action
        obs.seed(pick.randrange(99))
        self._pick, self._calls = pick, 0
        self._where = pick.choice(
            ["constructor", "reset", "step", "step", "step", "step", "close", "save_state", "never"]
        )
        self._when, self._length = pick.choice([0, 1, 5, 9, 12]), pick.choice([1, 2, 5, 100])
        self._age = 0
        if self._where == "constructor":
            raise pick.choice(ERRORS)()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._age = 0
        if self._is_due("reset"):
            return self._mistaken_reset()
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self._age += 1
        if self._pick.random() < 0.02:
            self._pick.choice(MEDDLING)()
        proper = [self.observation_space.sample(), 1.0, False, self._age >= self._length, {}]
        return self._mistaken_step(proper) if self._is_due("step") else tuple(proper)

    def close(self) -> None:
        if self._where == "close":
            raise self._pick.choice(ERRORS)()

    def save_state(self) -> Any:
        if self._is_due("save_state"):
            if self._pick.random() < 0.5:
                raise self._pick.choice(ERRORS)()
            return self._pick.choice([*ANY, {"x": object()}, {"x": {1, 2}}, {"x": BadArray()}, {("a", 1): 2}])
        return {"age": self._age, "calls": self._calls, "pairs": {1: (2, 3)}}

    def load_state(self, state: Any) -> None:
        assert state["pairs"] == {1: (2, 3)}
        self._age, self._calls = state["age"], state["calls"]

    def _is_due(self, where: str) -> bool:
        self._calls += 1
        return where == self._where and self._calls > self._when

    def _mistaken_reset(self) -> Any:
        pick = self._pick
        if pick.random() < 0.4:
            raise pick.choice(ERRORS)()
        return pick.choice(
            [None, (), self._odd_obs(), (self._odd_obs(), {}), (self.observation_space.sample(), pick.choice(INFOS))]
        )

    def _mistaken_step(self, proper: list[Any]) -> Any:
        pick = self._pick
        place = pick.randrange(7)
        if place == 5:
            raise pick.choice(ERRORS)()
        if place == 6:
            return pick.choice(
                [None, tuple(proper[:3]), tuple(proper[:4]), (*proper, 1), proper, BadArray(), pick.choice(ANY)]
            )
        choices = {1: REWARDS, 2: FLAGS, 3: FLAGS, 4: INFOS}
        proper[place] = self._odd_obs() if place == 0 else pick.choice(choices[place])
        return tuple(proper)

    def _odd_obs(self) -> Any:
        pick, sample = self._pick, self.observation_space.sample()
        if isinstance(sample, dict) and sample and pick.random() < 0.7:
            key = pick.choice(list(sample))
            return pick.choice([{**sample, key: odd_array(pick, np.shape(sample[key]))}, {**sample, "more": 1}, {}])
        shape = np.shape(sample) if not isinstance(sample, dict | tuple | str) else ()
        return odd_array(pick, shape)


def prepare(folder: Path) -> None:
    """Nothing: every case makes its own."""


def case(pick: random.Random, material: None, folder: Path) -> None:
    """Four iterations with a checkpoint after each, and the defaults of the process as they were."""
    with np.errstate(), torch.enable_grad():
        _case(pick, folder)
    assert (torch.get_default_dtype(), torch.get_default_device().type) == (torch.float32, "cpu"), "defaults changed"


def _case(pick: random.Random, folder: Path) -> None:
    obs, action = pick.choice(SPACES), pick.choice(ACTIONS)
    seeds = iter(range(10**6))
    base = pick.randrange(10**6)

    def make() -> OddEnv:
        return OddEnv(random.Random(base + next(seeds)), obs(), action())

    # Before the first step and after the last, nobody can tell a KeyboardInterrupt of an env from a Ctrl-C.
    run, agent = folder / "run", None
    with suppress(SurefootError, KeyboardInterrupt):
        agent = PPO(make, engine="local", **SMALL, **{"train.checkpoint_every": 1})
    if agent is None:
        return
    interrupted = False
    try:
        agent.learn(4 * ITERATION, run_dir=run)
    except SurefootError:
        pass
    except KeyboardInterrupt:
        interrupted = True
    assert all(bool(weight.isfinite().all()) for weight in agent.policy.parameters()), "weights are poisoned"
    saved = RunDirectory(run).saved() if run.exists() else []
    steps = agent.steps_trained
    assert not (interrupted and steps), "an env interrupted a run"
    assert not steps or read_checkpoint(saved[0])["progress"]["step"] == steps, "steps were lost"
    with suppress(SurefootError, KeyboardInterrupt):
        agent.close()
