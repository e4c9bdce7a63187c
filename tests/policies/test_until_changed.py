"""What is made of a policy is made again after every change but that of numbers."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import PPO
from surefoot.data.specs import ArraySpec
from surefoot.native.kernels import readable_only
from surefoot.policies import native_plan
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.native_plan import native_tensors
from surefoot.policies.until_changed import UntilChanged
from surefoot.settings.config import NormalizeConfig, PolicyConfig

VECTOR = ArraySpec("box", (3,), "float32")
MOVES = ArraySpec("box", (2,), "float32", low=-1.0, high=(1.0, 4.0))


def build() -> ActorCritic:
    return ActorCritic(VECTOR, MOVES, PolicyConfig(), NormalizeConfig(obs=True))


@pytest.fixture(autouse=True, params=["core", "reference"])
def looker(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both look for changes."""
    with readable_only() if request.param == "reference" else nullcontext():
        yield


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
    policy = build()
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
