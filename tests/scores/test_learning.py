"""Learning, shown by scores that a broken implementation misses."""

from typing import Any

import numpy as np
import pytest

from surefoot import PPO
from tests.scores.tasks import HORIZON, AddKeys, BestAllowed, Endless, TwoDials, WhichQuadrant

QUICK = {"num_envs": 8, "num_steps": 64, "batch_size": 128, "epochs": 8, "lr": 3e-3, "gae_lambda": 0.9, "gamma": 0.5}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("task", "settings", "steps", "threshold"),
    [
        pytest.param(AddKeys, {}, 8_000, 0.95, id="dict-observation"),
        pytest.param(BestAllowed, {}, 24_000, 0.9, id="masked-action"),
        pytest.param(TwoDials, {}, 12_000, 0.9, id="multi-discrete"),
        pytest.param(WhichQuadrant, {"lr": 1e-3}, 12_000, 0.9, id="image"),
    ],
)
def test_task_is_learned(task: Any, settings: dict[str, Any], steps: int, threshold: float, seed: int) -> None:
    agent = PPO(task, seed=seed, threads=1, eval_episodes=0, **(QUICK | settings)).learn(steps)
    assert agent.evaluate(20, seed=7).mean_reward / HORIZON >= threshold


@pytest.mark.parametrize("seed", [0, 1])
def test_cartpole_preset(seed: int) -> None:
    agent = PPO("CartPole-v1", seed=seed, threads=1, eval_episodes=0).learn(100_000)
    assert agent.evaluate(20, seed=7).mean_reward >= 475


@pytest.mark.parametrize("normalize", ["none", "returns", "reward"])
def test_value_of_an_endless_env(normalize: str) -> None:
    """Golden case `infinite_horizon_value`: 49.99; with truncation taken for termination it would be 4.4 to 7.5."""
    gamma = 0.98
    settings: dict[str, Any] = {} if normalize == "none" else {normalize: True}
    agent = PPO(
        Endless,
        gamma=gamma,
        gae_lambda=1.0,
        num_envs=8,
        num_steps=32,
        batch_size=64,
        epochs=10,
        lr=3e-3,
        lr_schedule="cosine",
        value_coef=1.0,
        max_grad_norm=None,
        hidden=[16],
        eval_episodes=0,
        threads=1,
        **settings,
    ).learn(40_000)
    value = agent_value(agent)
    if normalize == "reward":
        # Scaled rewards have scaled values: bring them back to compare.
        scaler = agent._started().scorer.state()["reward_scaler"]
        assert scaler is not None
        value *= float((scaler["var"] + 1e-8).sqrt())
    assert value == pytest.approx(1 / (1 - gamma), abs=1.0)


def agent_value(agent: PPO) -> float:
    import torch

    with torch.no_grad():
        output = agent.policy(torch.ones(1, 1), (), torch.zeros(1, dtype=torch.bool))
    return float(np.asarray(output.value)[0])
