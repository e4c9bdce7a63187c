"""A snapshot of a policy is its state, whatever was changed since the last one."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec
from surefoot.policies.actor_critic import ActorCritic
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.training.stateful import PolicyState


def build() -> ActorCritic:
    box = ArraySpec("box", (3,), "float32")
    return ActorCritic(box, ArraySpec("box", (2,), "float32"), PolicyConfig(hidden=(4,)), NormalizeConfig(obs=True))


def learn(policy: Any) -> None:
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(1)
    policy.obs_normalizers()[""].absorb(torch.randn(8, 3))


def spoil(policy: Any) -> None:
    policy.critic.head.bias.data = torch.full((1,), torch.nan)


class Rounded(nn.Linear):
    """Saves other numbers than those it computes with."""

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        destination[f"{prefix}weight"] = self.weight.detach().round()
        destination[f"{prefix}bias"] = self.bias.detach().clone()


CHANGES: dict[str, Callable[[Any], object]] = {
    "numbers": learn,
    "freezing": lambda policy: policy.critic.requires_grad_(False),
    "module": lambda policy: setattr(policy.critic, "head", nn.Linear(4, 1)),
    "memory": lambda policy: setattr(policy.critic.head.weight, "data", torch.ones(1, 4)),
    "layout": lambda policy: setattr(policy.critic.head.weight, "data", torch.ones(4, 1).t()),
    "transposed": lambda policy: setattr(policy.actor_body.trunk, "own", nn.Parameter(torch.rand(3, 2).t())),
    "dtype": lambda policy: policy.double(),
    "state dict": lambda policy: setattr(policy.critic, "head", Rounded(4, 1)),
    "state dict hook": lambda policy: policy.critic.register_state_dict_post_hook(
        lambda module, state, prefix, local: state.update({"more": module.head.bias + 1})
    ),
}


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    return found.keys() == expected.keys() and all(torch.equal(found[name], one) for name, one in expected.items())


@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_is_the_state(change: str) -> None:
    torch.manual_seed(1)
    policy = build()
    state = PolicyState(policy)
    for _ in range(2):
        before = state.snapshot()
        CHANGES[change](policy)
        for _ in range(2):
            learn(policy)
            expected = {name: one.clone() for name, one in policy.state_dict().items()}
            assert same(state.snapshot().tensors(), expected)
    assert not same(before.tensors(), policy.state_dict())


def test_a_snapshot_notices_a_number_that_is_not_finite_in_new_memory() -> None:
    policy = build()
    state = PolicyState(policy)
    good = state.snapshot()
    spoil(policy)
    assert good.is_finite
    assert not state.snapshot().is_finite
    state.go_back(good)
    assert same(policy.state_dict(), good.tensors())
