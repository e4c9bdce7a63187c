"""Which policies the native core knows, and what it is told of them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.critics.twin import TwinCritic
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import NativePlan, native_tensors, plan_policy
from surefoot.settings.config import NormalizeConfig, PolicyConfig

VECTOR = ArraySpec("box", (3,), "float32")
IMAGE = ArraySpec("image", (12, 12, 3), "uint8")
DEPTH = ArraySpec("box", (12, 10), "float32")
PLACE = ArraySpec("discrete", (), "int64", sizes=(4,), start=(0,))
CHOICE = ArraySpec("discrete", (), "int64", sizes=(3,), start=(2,))
MOVES = ArraySpec("box", (2,), "float32", low=-1.0, high=(1.0, 4.0))


def build(obs: ObsSpec = VECTOR, action: ArraySpec = CHOICE, **settings: object) -> ActorCritic:
    return ActorCritic(obs, action, PolicyConfig(**settings), NormalizeConfig())


def planned(policy: nn.Module) -> dict[str, Any]:
    plan = plan_policy(policy)
    assert isinstance(plan, NativePlan), plan
    return plan.plain


def test_a_plan_names_everything_by_the_learners_names() -> None:
    normalize = NormalizeConfig(obs=True, obs_clip=5.0, returns=True)
    spec = {"a.b": VECTOR, "secret": VECTOR}
    parts: Any = {"encoders": {"a.b": {"kind": "mlp"}}, "distribution": {"kind": "gaussian", "std": "state"}}
    config = PolicyConfig(critic_obs=("secret",), hidden=(8,), **parts)
    policy = ActorCritic(spec, MOVES, config, normalize)
    plan = planned(policy)
    first = "preprocess.normalizers.obs/a/b"
    assert plan["obs"][0] == {"key": "a.b", "size": 3, "normalizer": first, "clip": 5.0}
    assert plan["actor"]["encoders"] == [
        {"obs": 0, "encoder": {"kind": "mlp", "layers": ["actor_body.encoder.parts.0.network.layers.0"]}}
    ]
    assert [encoder["obs"] for encoder in plan["critic"]["encoders"]] == [0, 1]
    assert plan["head"]["std_layer"] == "head.std_layer"
    assert (plan["head"]["low"], plan["head"]["high"]) == ([-1.0, -1.0], [1.0, 4.0])
    scalar = {"kind": "scalar", "layer": "critic.head", "returns": "critic.returns"}
    assert plan["values"] == [{"critic": scalar, "trunk": []}]
    assert f"{first}.shift" in native_tensors(policy)


def test_twin_critics_are_two_with_trunks_of_their_own() -> None:
    plan = planned(build(critic={"kind": "twin", "of": {"kind": "quantile", "num_quantiles": 3}}, hidden=(8,)))
    assert plan["critic"]["trunk"] == []
    assert [value["trunk"] for value in plan["values"]] == [[f"critic.trunks.{i}.layers.0"] for i in range(2)]
    critic = {"kind": "quantile", "returns": "", "num_quantiles": 3, "kappa": 1.0, "clip": "quantiles"}
    assert [value["critic"] for value in plan["values"]] == [
        critic | {"layer": f"critic.critics.{i}.head"} for i in range(2)
    ]


def test_a_plan_without_normalization_or_own_critic_body() -> None:
    plan = planned(build(share_trunk=True, hidden=()))
    assert plan["obs"] == [{"key": "", "size": 3, "normalizer": "", "clip": math.inf}]
    assert plan["shares_trunk"]
    assert "critic" not in plan
    assert plan["actor"] == {
        "encoders": [{"obs": 0, "encoder": {"kind": "identity"}}],
        "memory": {"kind": "none"},
        "takes_actor_memory": False,
        "trunk": [],
    }
    assert (plan["head"]["sizes"], plan["head"]["start"]) == ([3], [2])


def test_a_plan_of_convolutions() -> None:
    plan = planned(build({"depth": DEPTH}, encoders={"depth": {"kind": "conv", "features": 7}}))
    name = "actor_body.encoder.parts.0"
    assert plan["actor"]["encoders"][0]["encoder"] == {
        "kind": "conv",
        "size": [1, 12, 10],
        "channels_last": False,
        "convolutions": [f"{name}.layers.{i}" for i in (0, 2)],
        "channels": [16, 32],
        "kernels": [4, 3],
        "strides": [2, 2],
        "layers": [f"{name}.project.layers.0"],
    }


def test_a_plan_to_learn_takes_observations_that_a_plan_to_act_does_not() -> None:
    policy = build({"camera": IMAGE, "place": PLACE, "joints": VECTOR})
    assert isinstance(plan_policy(policy), NotNative)
    plan: Any = plan_policy(policy, learns=True)
    assert [part["size"] for part in plan.plain["obs"]] == [12 * 12 * 3, 4, 3]


def test_tensors_are_views_of_the_learners_own() -> None:
    policy = build()
    tensors = native_tensors(policy)
    with torch.no_grad():
        policy.critic.get_parameter("head.bias").fill_(7)
    np.testing.assert_array_equal(tensors["critic.head.bias"], [7])
    assert {array.dtype for array in tensors.values()} == {np.dtype(np.float32)}


class OwnHead(CategoricalHead):
    """Could compute anything."""


class OwnCritic(ScalarCritic):
    """Could compute anything."""


class OwnTwin(TwinCritic):
    """Could compute anything."""


class OwnPolicy(ActorCritic):
    """Could compute anything."""


class OwnEncoder(nn.Module):
    def forward(self, obs: Tensor) -> Tensor:
        return obs


def with_parts(**parts: nn.Module) -> ActorCritic:
    policy = build()
    for name, part in parts.items():
        setattr(policy, name, part)
    return policy


def hooked() -> ActorCritic:
    policy = build()
    policy.actor_body.register_forward_hook(lambda *_: None)
    return policy


def with_another_activation() -> ActorCritic:
    policy = build()
    policy.actor_body.trunk = build(activation="relu").actor_body.trunk
    return policy


def with_another_convolution(layer: nn.Module) -> ActorCritic:
    policy = build(DEPTH, encoder="conv")
    layers = policy.actor_body.encoder.layers
    assert isinstance(layers, nn.Sequential)
    layers[0] = layer
    return policy


CONFIGS = PolicyConfig(), NormalizeConfig()


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (nn.Linear(1, 1), "policy Linear"),
        (OwnPolicy(VECTOR, CHOICE, *CONFIGS), "policy OwnPolicy"),
        (ActorCritic(VECTOR, CHOICE, *CONFIGS, encoder=lambda spec: OwnEncoder()), "encoder OwnEncoder"),
        (with_parts(head=OwnHead(64, CHOICE, CONFIGS[0])), "distribution OwnHead"),
        (with_parts(critic=OwnCritic(64, *CONFIGS)), "critic OwnCritic"),
        (with_parts(critic=OwnTwin(64, PolicyConfig(critic="twin"), CONFIGS[1])), "critic OwnTwin"),
        (build({"camera": IMAGE, "joints": VECTOR}), "'camera' is image of uint8"),
        (with_another_convolution(nn.Conv2d(1, 16, 4, 2, padding=1)), "only plain convolutions; actor_body.encoder"),
        (with_another_convolution(nn.Linear(4, 4)), "layer Linear"),
        (build(PLACE), "the observation is discrete"),
        (build(precision="bfloat16"), "bfloat16"),
        (build().double(), "float32"),
        (hooked(), "forward hooks of actor_body"),
        (with_another_activation(), "one activation"),
    ],
)
def test_what_the_core_does_not_know_is_named_in_one_line(policy: nn.Module, reason: str) -> None:
    refusal = plan_policy(policy)
    assert isinstance(refusal, NotNative)
    assert reason in refusal.reason
    assert "\n" not in refusal.reason
