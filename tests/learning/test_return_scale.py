"""The scale of rewards jumps 100 times in mid-training: predictions stay, and training goes on (S11)."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.policies.critics import Critic
from surefoot.policies.critics.linear import LinearCritic
from surefoot.policies.policy import Policy

CRITICS: dict[str, Any] = {
    "scalar": "scalar",
    "twin quantile": {"kind": "twin", "of": {"kind": "quantile", "num_quantiles": 11}},
}
OBS = torch.linspace(-1, 1, 32).unsqueeze(1)


class Jumping(gym.Env[np.ndarray, int]):
    """Pays what it shows, times a scale that changes."""

    scale = 1.0
    observation_space = gym.spaces.Box(-1, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._left = 8
        return self._observe(), {}

    def step(self, action: int) -> Any:
        reward = Jumping.scale * (2 + float(self._seen[0]) + 0.1 * action)
        self._left -= 1
        return self._observe(), reward, self._left == 0, False, {}

    def _observe(self) -> np.ndarray:
        self._seen = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self._seen


@torch.no_grad()
def values(policy: Policy) -> torch.Tensor:
    return policy(OBS, (), torch.ones(len(OBS), dtype=torch.bool)).value.clone()


def trained(critic: Any, absorb: Callable[[Critic, torch.Tensor], None]) -> tuple[list[float], float]:
    """Largest change of a prediction when the statistics move, relative to the predictions, and the final error."""
    Jumping.scale, changes = 1.0, []
    settings = {"num_envs": 8, "num_steps": 32, "batch_size": 64, "epochs": 4, "hidden": 16, "lr": 3e-3}
    agent = PPO(
        Jumping,
        critic=critic,
        normalize={"returns": True},
        gamma=0.9,
        lr_schedule="constant",
        console="off",
        **settings,
    )
    policy = agent.policy
    real = policy.critic.absorb

    def watched(returns: torch.Tensor) -> None:
        before = values(policy)
        absorb(policy.critic, returns)
        changes.append(float((values(policy) - before).abs().max() / before.abs().max()))

    policy.critic.absorb = watched  # type: ignore[method-assign]
    agent.learn(20 * 256)
    Jumping.scale = 100.0
    agent.learn(60 * 256)
    policy.critic.absorb = real  # type: ignore[method-assign]
    expected = 100 * 2 * (1 - 0.9 ** np.arange(1, 9)) / (1 - 0.9)
    return changes, float(values(policy).mean() / expected.mean())


def rescaled(critic: Critic, returns: torch.Tensor) -> None:
    type(critic).absorb(critic, returns)


def careless(critic: Critic, returns: torch.Tensor) -> None:
    """Moves the statistics alone."""
    for part in critic.modules():
        if isinstance(part, LinearCritic) and part.returns is not None:
            part.returns.absorb(returns)


@pytest.mark.parametrize("kind", CRITICS)
def test_predictions_stay_when_the_scale_jumps(kind: str):
    changes, share = trained(CRITICS[kind], rescaled)
    assert max(changes[1:]) < 1e-3
    assert share == pytest.approx(1, abs=0.25), "the critic has followed"


def test_without_rescaling_every_prediction_moves():
    changes, _ = trained("scalar", careless)
    assert max(changes[1:]) > 0.5
