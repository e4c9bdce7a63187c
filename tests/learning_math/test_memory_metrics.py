"""What runs tell about their memory and about how far observations drift."""

import json
import math

import pytest
import torch

from surefoot import PPO
from surefoot.core.config import PPOConfig
from surefoot.learning.memory_metrics import memory_metrics
from surefoot.learning.obs_drift import absorb_obs
from surefoot.rollout.samples import samples_of
from surefoot.telemetry import names
from tests.rollout.test_sequences import numbered


class Named:
    def state_names(self) -> tuple[str, ...]:
        return ("hidden",)


def test_states_are_summed_up():
    rollout, targets = numbered()
    samples = samples_of(rollout, targets, PPOConfig())
    metrics = memory_metrics(rollout, samples, Named())
    states = rollout.state[0]
    assert metrics == {
        "memory/padding": pytest.approx(samples.padding),
        "memory/hidden_norm": pytest.approx(float(states.abs().mean())),  # of one number it is its size
        "memory/hidden_mean": pytest.approx(float(states.mean())),
        "memory/hidden_std": pytest.approx(float(states.std(correction=0))),
    }


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"memory": "gru"}, ("actor_hidden", "critic_hidden")),
        ({"memory": {"kind": "lstm", "shared": True}}, ("hidden", "cell")),
        ({"memory": "none"}, ()),
    ],
    ids=str,
)
def test_a_run_writes_them(settings, parts, tmp_path):
    agent = PPO("CartPole-v1", num_envs=2, num_steps=16, batch_size=32, **{"normalize.obs": True}, **settings)
    agent.learn(96, run_dir=tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    found = {name for record in records for name in record if name.startswith("memory/")}
    expected = {f"memory/{part}_{number}" for part in parts for number in ("norm", "mean", "std")}
    assert found == expected | ({"memory/padding"} if parts else set())
    assert all(math.isfinite(record[name]) for record in records for name in found & record.keys())
    assert names.OBS_DRIFT_ACROSS not in records[0], "the first rollout moves from nowhere"
    assert records[1][names.OBS_DRIFT_ACROSS] > 0
    assert records[0][names.OBS_DRIFT_WITHIN] > 0


def drift_of(offsets: list[float], shift_within: float) -> list[dict[str, float]]:
    """Drift of rollouts of unit noise around an offset that moves halfway by `shift_within`."""
    agent = PPO("CartPole-v1", num_envs=2, num_steps=400, batch_size=800, **{"normalize.obs": True})
    trainer, found = agent._started(), []
    generator = torch.Generator().manual_seed(1)
    for offset in offsets:
        rollout = trainer.collector.collect(trainer.policy)
        rollout.obs.copy_(torch.randn(rollout.obs.shape, generator=generator) + offset)
        rollout.obs[200:] += shift_within
        targets = trainer.scorer.score(rollout, trainer.policy.critic)
        batch = samples_of(rollout, targets, agent.config.ppo).batch
        rollout = type(rollout)(**vars(rollout) | {"obs_moments": None})
        found.append(absorb_obs(trainer.policy, batch, rollout))
    return found


def test_drift_is_in_standard_deviations():
    first, second, third = drift_of([0.0, 0.0, 3.0], shift_within=0.0)
    assert first[names.OBS_DRIFT_WITHIN] < 0.2
    assert second[names.OBS_DRIFT_ACROSS] < 0.1
    # A third of all samples lie 3 off: the mean moves by 1, the std grows to sqrt(1 + 2).
    assert third[names.OBS_DRIFT_ACROSS] == pytest.approx(1 / math.sqrt(3), rel=0.1)
    (moved,) = drift_of([0.0], shift_within=2.0)
    assert moved[names.OBS_DRIFT_WITHIN] == pytest.approx(2 / math.sqrt(2), rel=0.1)
