"""Controllers and variance scaling of the package continue bit for bit, in the middle of a window or a warm-up."""

from typing import Any

import pytest
import torch

from surefoot import PPO
from surefoot.errors import CheckpointError
from surefoot.storage.state import states
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from tests.learning.test_outside_parts import STEPS, small, weights
from tests.training.states import assert_same

EACH: dict[str, dict[str, Any]] = {
    "entropy": {
        "entropy_coef": 0.01,
        "schedules": {"entropy_coef": {"kind": "entropy_adaptive", "window": 3, "slope": 1.0, "decay_updates": 4}},
    },
    "penalty": {
        "ppo.terms": {"kl": {"kind": "kl_penalty", "weight": 0.1}},
        "schedules": {"kl.weight": {"kind": "kl_penalty", "desired_kl": 1e-6}},
    },
    "scaling": {"optimizer.transforms": {"vgs": {"kind": "variance_scaling", "warmup": 10, "beta": 0.9}}},
}
EVERYTHING = EACH["entropy"] | EACH["penalty"] | EACH["scaling"]
EVERYTHING["schedules"] = EACH["entropy"]["schedules"] | EACH["penalty"]["schedules"]


@pytest.mark.parametrize(
    ("name", "learner"), [*((name, "native") for name in EACH), ("all", "native"), ("all", "torch")]
)
def test_each_continues_bit_for_bit_from_a_checkpoint(name, learner, tmp_path):
    given = EVERYTHING if name == "all" else EACH[name]
    whole = small(steps=5 * STEPS, **given, **{"train.learner": learner}).learn(2 * STEPS)
    whole.save(tmp_path / "agent.safetensors")
    resumed = PPO.load(tmp_path / "agent.safetensors")
    for agent in (whole, resumed):
        agent.learn(3 * STEPS)
    trainers = [agent._started() for agent in (whole, resumed)]
    assert_same(states(trainers[1].stateful()), states(trainers[0].stateful()))
    plain = small(
        steps=5 * STEPS, **{"train.learner": learner}, **({"entropy_coef": 0.01} if name == "entropy" else {})
    )
    plain.learn(2 * STEPS).learn(3 * STEPS)
    assert not torch.equal(weights(plain), weights(whole)), "the part makes a difference"


def test_moments_of_another_network_are_refused_and_nothing_changes(tmp_path):
    agent = small(**EACH["scaling"]).learn(STEPS)
    agent.save(tmp_path / "agent.safetensors")
    state = read_checkpoint(tmp_path / "agent.safetensors")
    moments = state["gradient"]["transforms"]["vgs"]["mean"]
    name = next(iter(moments))
    moments[name] = torch.zeros(3)
    write_checkpoint(tmp_path / "other.safetensors", state)
    with pytest.raises(CheckpointError, match=rf"'vgs' belongs to another network: .*{name} has shape \(3,\)"):
        PPO.load(tmp_path / "other.safetensors").learn(STEPS)
