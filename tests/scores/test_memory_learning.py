"""What is learned with memory, and is not without: the arm of a T-maze whose cue lies ten steps back."""

from typing import Any

import pytest

from surefoot import PPO

MAZE: dict[str, Any] = {"kwargs": {"length": 10}, "num_envs": 64, "num_steps": 64, "batch_size": 1024, "lr": 3e-3}
SMALL = {"hidden": (32,), "sequence_length": 32, "threads": 1, "eval_episodes": 0}


def success(kind: str, seed: int, steps: int, **settings: Any) -> float:
    memory = {"kind": kind} | ({} if kind == "none" else {"hidden_size": 32})
    agent = PPO("TMaze-v0", seed=seed, memory=memory, **(MAZE | SMALL | settings)).learn(steps)
    return agent.evaluate(200, seed=7).mean_reward


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_what_was_seen_is_remembered(kind: str, seed: int) -> None:
    assert success(kind, seed, 150_000) >= 0.95


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"engine": "local"}, id="local"),
        pytest.param({"policy.memory.shared": True, "policy.memory.layers": 2}, id="shared, two layers"),
        pytest.param({"sequence_state": "recomputed", "sequence_length": 16}, id="recomputed"),
        pytest.param({"burn_in": 8, "sequence_length": 16}, id="burn-in"),
    ],
)
def test_however_it_is_trained(settings: dict[str, Any]) -> None:
    assert success("gru", 0, 150_000, **settings) >= 0.95


@pytest.mark.parametrize("seed", [0, 1])
def test_without_it_the_arm_is_guessed(seed: int) -> None:
    assert success("none", seed, 60_000) <= 0.6
