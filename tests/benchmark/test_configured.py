"""Surefoot as a subject: steps are those executed, whatever was asked for."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from surefoot.benchmark.configured import Collecting, Training
from surefoot.settings.layers import build_config

ENVS, STEPS = 4, 32
CONFIG = build_config(
    {
        "rollout": {"num_envs": ENVS, "num_steps": STEPS},
        "ppo": {"epochs": 1, "batch_size": 16},
        "policy": {"hidden": [4]},
    }
)


class Resets(gym.vector.VectorWrapper[Any, Any, Any]):
    """Counts the rows that only reset: those that ended in the step before."""

    count = 0
    _ended: Any = False

    def step(self, actions: Any) -> Any:
        result = super().step(actions)
        self.count += int(np.sum(self._ended))
        self._ended = result[2] | result[3]
        return result


@pytest.mark.parametrize("kind", [Training, Collecting])
def test_steps_that_only_reset_do_not_count(kind: type[Training]) -> None:
    options = {"autoreset_mode": AutoresetMode.NEXT_STEP}
    env = Resets(gym.make_vec("CartPole-v1", ENVS, "sync", vector_kwargs=options))
    subject = kind(CONFIG, env)
    try:
        window = subject.run(3)
    finally:
        subject.close()
    assert env.count > 0
    assert window.steps == 3 * ENVS * STEPS - env.count
    assert window.iterations == 3


def test_phases() -> None:
    training, collecting = Training(CONFIG), Collecting(CONFIG)
    trained, collected = training.run(2), collecting.run(2)
    training.close()
    collecting.close()
    assert trained.rollout_s > 0
    assert trained.learn_s > 0
    assert collected.rollout_s > 0
    assert collected.learn_s == 0
    assert trained.steps == collected.steps == 2 * ENVS * STEPS


@pytest.mark.parametrize("engine", ["native", "local"])
@pytest.mark.parametrize("kind", [Training, Collecting])
def test_policies_with_memory(kind: type[Training], engine: str) -> None:
    """As `--policy.memory gru --policy.memory.hidden_size 8` asks for; native refuses to be another engine."""
    memory = {"policy.memory": "gru", "policy.memory.hidden_size": 8}
    config = build_config(
        CONFIG.model_dump(mode="json"), {"env.id": "CartPoleNoVel-v1", "rollout.engine": engine, **memory}
    )
    subject = kind(config)
    try:
        window = subject.run(2)
    finally:
        subject.close()
    assert subject.engine == engine
    assert window.steps == 2 * ENVS * STEPS
    assert subject._trainer.policy.initial_state(1)[0].shape == (1, 1, 8)
