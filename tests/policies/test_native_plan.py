"""Which policies the native core knows, and what it is told of them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot import PPO
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.policies import native_plan
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.critics.twin import TwinCritic
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import NativePlan, UntilChanged, native_tensors, plan_policy
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


def counted() -> tuple[UntilChanged[dict[str, Any]], list[nn.Module]]:
    """Tensors of a policy, and the calls that made them."""
    calls: list[nn.Module] = []

    def make(policy: Any, *others: object) -> dict[str, Any]:
        calls.append(policy)
        return native_tensors(policy)

    return UntilChanged(make), calls


def test_a_policy_is_planned_once_while_only_its_numbers_change() -> None:
    policy = ActorCritic(VECTOR, MOVES, PolicyConfig(), NormalizeConfig(obs=True, returns=True))
    described, calls = counted()
    for _ in range(3):
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.add_(1)
        policy.obs_normalizers()[""].absorb(torch.randn(8, 3))
        policy.critic.absorb(torch.randn(8))
        policy.load_state_dict({name: tensor.clone() for name, tensor in policy.state_dict().items()})
        views = described.of(policy)
    assert len(calls) == 1
    for name, fresh in native_tensors(policy).items():
        np.testing.assert_array_equal(views[name], fresh, err_msg=name)


CHANGES: dict[str, Any] = {
    "attribute": lambda policy: setattr(policy.head, "std_floor", 0.5),
    "layer": lambda policy: setattr(policy.critic, "head", nn.Linear(64, 1)),
    "layer in a list": lambda policy: policy.actor_body.trunk.layers.__setitem__(0, nn.Linear(3, 64)),
    "parameter": lambda policy: setattr(policy.critic.head, "bias", nn.Parameter(torch.zeros(1))),
    "storage": lambda policy: setattr(policy.critic.head.bias, "data", torch.zeros(1)),
    "layout": lambda policy: setattr(
        policy.actor_body.trunk.layers[1].weight, "data", policy.actor_body.trunk.layers[1].weight.data.t()
    ),
    "forward hook": lambda policy: policy.critic.register_forward_hook(lambda *_: None),
    "forward": lambda policy: setattr(policy.critic, "forward", lambda latent: latent),
    "buffer": lambda policy: setattr(policy.obs_normalizers()[""], "shift", torch.ones(3)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_policy_is_planned_again_after_any_other_change(change: str) -> None:
    policy = ActorCritic(VECTOR, MOVES, PolicyConfig(), NormalizeConfig(obs=True))
    described, calls = counted()
    described.of(policy)
    CHANGES[change](policy)
    described.of(policy)
    described.of(policy)
    assert len(calls) == 2


def test_after_an_error_nothing_old_is_returned() -> None:
    policy, answers = build(), iter([1, ValueError("no"), 2])

    def make(policy: Any) -> int:
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    made = UntilChanged(make)
    assert made.of(policy) == 1
    policy.critic = ScalarCritic(64, PolicyConfig(), NormalizeConfig())
    with pytest.raises(ValueError, match="no"):
        made.of(policy)
    assert made.of(policy) == 2


def test_attributes_of_other_objects_count_too() -> None:
    class Settings:
        clip = 0.2

    policy, settings = build(), Settings()
    described, calls = counted()
    for clip in (0.1, 0.1, 0.3):
        settings.clip = clip
        described.of(policy, settings)
    described.of(policy, Settings())
    assert len(calls) == 3


def test_an_iteration_of_a_run_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[nn.Module] = []
    plan = native_plan._plan
    monkeypatch.setattr(native_plan, "_plan", lambda policy, learns: plans.append(policy) or plan(policy, learns))
    agent = PPO("CartPole-v1", num_envs=4, num_steps=32, batch_size=64, epochs=1, eval_episodes=0, preset="none")
    agent.learn(256, progress=False)
    before = len(plans)
    agent.learn(1024, progress=False)
    assert len(plans) == before
