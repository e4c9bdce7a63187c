"""Runs of checkpoint format 1: resumed by this version, they end with the weights that the old version ended with.

`checkpoints/v1/<name>` are run directories of the last version with format 1, at step 32 of 96; `ended.safetensors` is
the checkpoint that the old version wrote at step 96.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open

from surefoot.api import PPO
from surefoot.cli.resume import go_on
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.migrations import FORMAT_VERSION

OLD = Path(__file__).parent / "checkpoints" / "v1"
NAMES = ("pendulum", "cartpole-gru")
BEGUN = "checkpoints/step_000000000032.safetensors"


@pytest.fixture
def run(request, tmp_path) -> Path:
    """A copy of an old run, without the result of the old version."""
    copy = tmp_path / request.param
    shutil.copytree(OLD / request.param, copy, ignore=shutil.ignore_patterns("ended.safetensors"))
    return copy


def test_all_old_runs_are_tried():
    assert sorted(path.name for path in OLD.iterdir()) == sorted(NAMES)
    assert FORMAT_VERSION > 1
    for name in NAMES:
        for file in (BEGUN, "ended.safetensors"):
            with safe_open(OLD / name / file, "pt") as opened:
                assert opened.metadata()["version"] == "1"


@pytest.mark.parametrize("run", NAMES, indirect=True)
def test_resumed_runs_end_where_the_old_version_ended(run):
    assert go_on(run, {"train.steps": 96, "log.console": "off", "log.tensorboard": False}) == 0
    ours = read_checkpoint(run / "checkpoints" / "step_000000000096.safetensors")
    theirs = read_checkpoint(OLD / run.name / "ended.safetensors")
    begun = read_checkpoint(OLD / run.name / BEGUN)
    assert ours["progress"] == theirs["progress"]
    for part in ("policy", "gradient", "scorer"):
        before, expected, found = (dict(leaves(state[part])) for state in (begun, theirs, ours))
        assert list(found) == list(expected), part
        for name, value in expected.items():
            # Bit for bit on the machine that made them; other processors may round the last bits differently.
            torch.testing.assert_close(
                found[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}"
            )
        if part in ("policy", "gradient"):
            assert any(not torch.equal(before[name], expected[name]) for name in expected), "it has learned since"


def leaves(state, where: str = ""):
    if isinstance(state, dict):
        for name, value in state.items():
            yield from leaves(value, f"{where}.{name}")
    elif state is not None:
        yield where, torch.as_tensor(state)


def test_the_adaptive_learning_rate_is_carried_over():
    state = read_checkpoint(OLD / "pendulum" / BEGUN)
    saved = state["schedules"]["lr"]
    assert saved["kind"] == "kl_adaptive"
    assert saved["state"]["value"] != saved["start"], "it has moved already"
    agent = PPO.load(OLD / "pendulum" / BEGUN)
    trainer = agent._started()
    assert trainer.schedules.at(trainer.progress).lr == saved["state"]["value"]
    assert agent.config.schedules["lr"].desired_kl == 0.02
    agent.close()


@pytest.mark.parametrize("name", NAMES)
def test_old_policies_act(name):
    agent = PPO.load(OLD / name / BEGUN)
    obs = np.full(agent.specs.obs.shape, 0.1, np.float32)
    action, state = agent.predict(obs)
    assert np.all(np.isfinite(action))
    assert len(state) == len(agent.policy.initial_state(1))
    assert bool(state) == (name == "cartpole-gru")
    again, _ = PPO.load(OLD / name / BEGUN).predict(obs)
    np.testing.assert_array_equal(action, again)


@pytest.mark.parametrize("run", NAMES, indirect=True)
def test_an_old_run_continues_the_same_in_one_go_or_two(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    quiet = {"log.console": "off", "log.tensorboard": False}
    assert go_on(run, {"train.steps": 96, **quiet}) == 0
    total = read_checkpoint(run / "checkpoints" / "step_000000000096.safetensors")
    agent = PPO.load(other / BEGUN).learn(64)
    state = agent._started().policy.state_dict()
    for name, value in total["policy"].items():
        assert torch.equal(state[name], value), name
    agent.close()
