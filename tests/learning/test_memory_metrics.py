"""What runs tell about their memory and about how far observations drift."""

import json
import math
from dataclasses import replace

import pytest
import torch

from surefoot import PPO
from surefoot.learning.memory_metrics import memory_metrics
from surefoot.learning.obs_drift import absorb_obs
from surefoot.rollout.samples import samples_of
from surefoot.settings.config import PPOConfig
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


def test_layers_are_summed_up_apart():
    rollout, targets = numbered()
    first, second = rollout.state[0], rollout.state[0] + 7
    layered = replace(rollout, state=(torch.cat((first, second), dim=2),))
    metrics = memory_metrics(layered, samples_of(rollout, targets, PPOConfig()), Named())
    for layer, states in enumerate((first, second)):
        assert metrics[f"memory/hidden_layer{layer}_norm"] == pytest.approx(float(states.abs().mean()))
        assert metrics[f"memory/hidden_layer{layer}_mean"] == pytest.approx(float(states.mean()))
        assert metrics[f"memory/hidden_layer{layer}_std"] == pytest.approx(float(states.std(correction=0)))
    assert metrics["memory/hidden_mean"] == pytest.approx(float(first.mean()) + 3.5)


def test_both_learners_say_the_same_about_layers():
    memory = {"kind": "lstm", "shared": True, "layers": 2, "hidden_size": 8}
    found = []
    for learner in ("native", "torch"):
        agent = PPO("CartPole-v1", num_envs=2, num_steps=16, batch_size=32, learner=learner, memory=memory)
        agent.learn(64)
        metrics = agent._started().iterate().learned.metrics
        found.append({name: value for name, value in metrics.items() if "layer" in name})
    assert len(found[0]) == 2 * 2 * 3, "parts, layers, figures"
    assert found[0] == pytest.approx(found[1], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"memory": "gru"}, ("actor_hidden", "critic_hidden")),
        ({"memory": {"kind": "lstm", "shared": True}}, ("hidden", "cell")),
        (
            {"memory": {"kind": "gru", "shared": True, "layers": 2}},
            ("hidden", "hidden_layer0", "hidden_layer1"),
        ),
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


def drift_of(
    offsets: list[float], shift_within: float, widen_within: float = 1.0, is_first_half_valid: bool = True
) -> list[dict[str, float]]:
    """Drift of rollouts of unit noise around an offset; halfway the offset moves, and the noise is multiplied."""
    agent = PPO("CartPole-v1", num_envs=2, num_steps=400, batch_size=800, **{"normalize.obs": True})
    trainer, found = agent._started(), []
    generator = torch.Generator().manual_seed(1)
    for offset in offsets:
        rollout = trainer.collector.collect(trainer.policy)
        rollout.obs.copy_(torch.randn(rollout.obs.shape, generator=generator))
        rollout.obs[200:] = rollout.obs[200:] * widen_within + shift_within
        rollout.obs.add_(offset)
        rollout.valid[:200] = is_first_half_valid
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
    # The std grew from 1 to sqrt(3), which is now the unit.
    assert second[names.OBS_STD_DRIFT_ACROSS] < 0.1
    assert third[names.OBS_STD_DRIFT_ACROSS] == pytest.approx(1 - 1 / math.sqrt(3), rel=0.1)
    (moved,) = drift_of([0.0], shift_within=2.0)
    assert moved[names.OBS_DRIFT_WITHIN] == pytest.approx(2 / math.sqrt(2), rel=0.1)
    assert moved[names.OBS_STD_DRIFT_WITHIN] < 0.1


def test_drift_of_standard_deviations_far_from_zero():
    (wider,) = drift_of([1000.0], shift_within=0.0, widen_within=3.0)
    # The halves have stds of 1 and 3, all samples together one of sqrt((1 + 9) / 2).
    assert wider[names.OBS_STD_DRIFT_WITHIN] == pytest.approx(2 / math.sqrt(5), rel=0.1)
    assert wider[names.OBS_DRIFT_WITHIN] < 0.2


def test_a_half_without_valid_steps_has_no_drift_within():
    (found,) = drift_of([0.0], shift_within=0.0, is_first_half_valid=False)
    assert found == {}
