"""Fault 9: a checkpoint of every format version there ever was still loads, acts and learns.

A fixture `checkpoints/v<version>.safetensors` is made when its version is new, by

    surefoot train CartPole-v1 --policy.hidden 4 --rollout.num_envs 2 --rollout.num_steps 16 --ppo.batch_size 16
        --ppo.epochs 2 --steps 64 --normalize.obs --normalize.reward --normalize.returns --train.eval_episodes 2
"""

from pathlib import Path

import numpy as np
import pytest

from surefoot.api import PPO
from surefoot.errors import CheckpointError
from surefoot.training.migrations import FORMAT_VERSION, MIGRATIONS, migrate

FIXTURES = Path(__file__).parent / "checkpoints"
VERSIONS = range(1, FORMAT_VERSION + 1)


def test_every_version_has_a_fixture():
    assert sorted(path.name for path in FIXTURES.glob("*.safetensors")) == [
        f"v{version}.safetensors" for version in VERSIONS
    ]


def test_every_old_version_has_a_migration():
    assert sorted(MIGRATIONS) == list(VERSIONS)[:-1]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_of_every_version_acts_and_learns(version):
    agent = PPO.load(FIXTURES / f"v{version}.safetensors")
    assert agent.config.policy.hidden == (4,)
    action, _ = agent.predict(np.zeros(4, dtype=np.float32))
    assert action in (0, 1)
    assert agent.evaluate(3).mean_reward >= 5
    assert agent.policy.state_dict()["preprocess.normalizers.obs.count"] == 64
    agent.learn(32)
    assert agent._started().progress.step == 96
    assert agent._started().progress.iteration == 3
    agent.close()


def test_the_current_version_is_taken_as_it_is():
    state = {"a": 1}
    assert migrate(state, FORMAT_VERSION) is state


def test_a_gap_in_the_migrations_is_said(monkeypatch):
    monkeypatch.setitem(MIGRATIONS, -2, lambda state: state)
    with pytest.raises(CheckpointError, match="format version -1 is no longer supported"):
        migrate({}, -2)
