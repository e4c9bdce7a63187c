"""Envs and hooks that change PyTorch's and NumPy's settings for the whole process: the run does not notice."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot import PPO

SMALL: dict[str, Any] = {
    **{"num_envs": 2, "num_steps": 8, "batch_size": 8, "epochs": 1, "hidden": 4, "engine": "local"},
    **{"eval_episodes": 0, "tensorboard": False, "seed": 1},
}
CHANGES: dict[str, Callable[[], Any]] = {
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "device": lambda: torch.set_default_device("meta"),
    "gradients": lambda: torch.set_grad_enabled(False),
    "threads": lambda: torch.set_num_threads(3),
    "seeds": lambda: (torch.manual_seed(0), np.random.seed(0)),
    "numpy": lambda: np.seterr(all="raise"),
}


class Meddler(gym.Env[Any, Any]):
    """Changes something in one of its calls."""

    def __init__(self, where: str = "", change: Callable[[], Any] = lambda: None) -> None:
        self.observation_space, self.action_space = spaces.Box(-1.0, 1.0, (3,)), spaces.Discrete(2)
        self._where, self._change, self._age = where, change, 0
        self._meddle("constructor")

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._age = 0
        self._meddle("reset")
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        self._age += 1
        self._meddle("step")
        return self._obs(), float(action), False, self._age >= 5, {}

    def _meddle(self, where: str) -> None:
        if where == self._where:
            self._change()

    def _obs(self) -> Any:
        return self.np_random.uniform(-1, 1, 3).astype(np.float32)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = np.geterr()
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    np.seterr(**before)


def weights(env: Callable[[], Any], learner: str, hooks: Any = ()) -> list[Any]:
    agent = PPO(env, **{"train.learner": learner}, **SMALL).learn(48, hooks=hooks)
    agent.predict(np.zeros(3, np.float32))
    agent.evaluate(2)
    agent.close()
    return [weight.tolist() for weight in agent.policy.parameters()]


@cache
def undisturbed(learner: str) -> list[Any]:
    return weights(Meddler, learner)


@pytest.mark.parametrize(
    ("learner", "where"),
    [("torch", "constructor"), ("torch", "reset"), ("torch", "step"), ("torch", "hook"), ("native", "step")],
)
@pytest.mark.parametrize("name", CHANGES)
def test_the_run_does_not_notice(name: str, learner: str, where: str) -> None:
    change, alone = CHANGES[name], undisturbed(learner)
    hooks = [lambda report: change() and None] if where == "hook" else []
    assert weights(lambda: Meddler(where, change), learner, hooks) == alone
    assert torch.get_default_dtype() == torch.float32
    assert torch.get_default_device().type == "cpu"
