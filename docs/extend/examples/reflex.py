"""Reflex-v0 in Python: the readable twin of reflex.cpp, and a hook that trains its network."""

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from surefoot import Hook
from surefoot.envs.network import Network

STEP, DRAG, SUBSTEPS = 0.05, 0.5, 4
SIZES = (2, 8, 1)
STIFFNESS, DAMPING, RATE = 8.0, 2.0, 0.02


class Reflex(gym.Env[Any, Any]):
    """The action is a target; a network inside the env makes forces of it, in every substep."""

    parameters = {"reflex": np.zeros(33)}
    agent_parameters = ["reflex"]

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._network = Network(SIZES)
        self._position, self._velocity, self._goal = 0.0, 0.0, 0.0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._network.set(values["reflex"])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._position = float(self.np_random.uniform(-1.0, 1.0))
        self._goal = float(self.np_random.uniform(-1.0, 1.0))
        self._velocity = 0.0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        target = min(max(float(action[0]), -1.0), 1.0)
        for _ in range(SUBSTEPS):
            force = float(self._network.run([target - self._position, self._velocity])[0])
            self._velocity = self._velocity + STEP * (force - DRAG * self._velocity)
            self._position = self._position + STEP * self._velocity
        miss = self._position - self._goal
        return self._observe(), -miss * miss, False, False, {}

    def save_state(self) -> dict[str, Any]:
        return {"position": self._position, "velocity": self._velocity, "goal": self._goal}

    def load_state(self, state: dict[str, Any]) -> None:
        self._position, self._velocity = state["position"], state["velocity"]
        self._goal = state["goal"]

    def _observe(self) -> Any:
        return np.array([self._position, self._velocity, self._goal])


class TeachReflex(Hook):
    """Fits the network to a PD law, a little after each iteration of the policy."""

    def begin(self) -> None:
        if "reflex" not in self.run.envs.parameter_values:  # a new run
            random = torch.Generator().manual_seed(self.run.config.train.seed)
            self.run.envs.set_parameters({"reflex": 0.5 * torch.randn(33, generator=random)})

    def after_iteration(self, report: Any) -> None:
        # Read where the run keeps it, so that a rollback of the policy also rolls this back.
        weights = torch.tensor(self.run.envs.parameter_values["reflex"], requires_grad=True)
        random = torch.Generator().manual_seed(report.progress.iteration)
        felt = 2 * torch.rand(64, 2, generator=random) - 1
        wanted = STIFFNESS * felt[:, 0] - DAMPING * felt[:, 1]
        for _ in range(20):
            first, first_bias, second, second_bias = weights.split([16, 8, 8, 1])
            force = torch.tanh(felt @ first.view(8, 2).T + first_bias) @ second + second_bias
            loss = (force - wanted).square().mean()
            (gradient,) = torch.autograd.grad(loss, weights)
            weights = (weights - RATE * gradient).detach().requires_grad_()
        self.run.envs.set_parameters({"reflex": weights.detach()})
        report.metrics["reflex/loss"] = loss.item()


TWINS = {"Reflex-v0": Reflex}
