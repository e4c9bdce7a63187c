"""One agent in several threads: predictions and evaluations are right, and two trainings are refused."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from surefoot import PPO
from surefoot.errors import AgentInUseError

SETTINGS: dict[str, Any] = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 1, "hidden": 4, "seed": 3}
OBS = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)


@pytest.fixture
def agent() -> PPO:
    return PPO("CartPole-v1", **SETTINGS)


def test_a_thread_that_trains_has_the_agent_to_itself(agent, tmp_path):
    inside, tried = Event(), Event()

    def hold(report: Any) -> None:
        inside.set()
        assert tried.wait(60)
        agent.save(tmp_path / "own.safetensors")  # a hook is in the same thread

    with ThreadPoolExecutor() as threads:
        training = threads.submit(agent.learn, 64, hooks=[hold])
        assert inside.wait(60)
        try:
            for call in (agent.learn, lambda: agent.save(tmp_path / "torn.safetensors"), agent.close):
                with pytest.raises(AgentInUseError, match="another thread is training, saving or closing this agent"):
                    call()
            assert agent.predict(OBS)[0].shape == (200,)
            assert len(agent.evaluate(2).rewards) == 2
        finally:
            tried.set()
        training.result()
    assert agent.steps_trained == 64
    assert not (tmp_path / "torn.safetensors").exists()
    agent.learn(32)
    agent.close()


def test_predictions_of_many_threads_are_those_of_one(agent):
    alone = [agent.predict(obs)[0] for obs in OBS]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda obs: agent.predict(obs)[0], OBS)) == alone
        assert len({one.mean_reward for one in threads.map(lambda _: agent.evaluate(2), range(4))}) == 1
    agent.close()
