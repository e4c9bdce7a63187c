"""Parts from outside the package describe themselves to the core; what it does not have is stepped."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.data.specs import ArraySpec
from surefoot.native import core
from surefoot.philox import Stream, uniforms
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.distributions.gaussian import GaussianHead
from surefoot.policies.native_parts import NotNative, Plain, PlanBuilder, UnknownToCoreError
from surefoot.policies.native_plan import plan_policy
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.layers import build_config
from tests.policies.laplace_head import LaplaceHead
from tests.policies.radial_encoder import RadialEncoder

VECTOR = ArraySpec("box", (3,), "float32")
MOVES = ArraySpec("box", (2,), "float32")
NO_LAPLACE = "the native core has no distribution of kind 'laplace'"


def build(**parts: nn.Module) -> ActorCritic:
    policy = ActorCritic(VECTOR, MOVES, PolicyConfig(), NormalizeConfig())
    for name, part in parts.items():
        setattr(policy, name, part)
    return policy


def test_a_head_from_outside_says_its_own_kind() -> None:
    policy = build(head=LaplaceHead(64, MOVES, PolicyConfig()))
    described = policy.head.native(PlanBuilder(policy, "tanh"))
    assert described == {"kind": "laplace", "layer": "head.location", "size": 2, "scale": 0.5}


def test_a_kind_that_the_core_does_not_have_is_named_in_one_line() -> None:
    policy = build(head=LaplaceHead(64, MOVES, PolicyConfig()))
    assert plan_policy(policy) == NotNative(NO_LAPLACE)
    known: Any = plan_policy(build())
    described = policy.head.native(PlanBuilder(policy, "tanh"))
    with pytest.raises(ValueError, match=r"plan\.head\.kind is 'laplace', which the core does not know"):
        core().Policy(known.plain | {"head": described})


def test_policies_with_such_a_head_are_stepped() -> None:
    rollout = {"num_envs": 2, "num_steps": 4, "engine": "native"}
    config = build_config({"env": {"id": "Pendulum-v1"}, "rollout": rollout, "ppo": {"batch_size": 8}})
    env = build_env(config)
    policy: Any = build_policy(config, Specs(env.obs_spec, env.action_spec))
    policy.head = LaplaceHead(policy.actor_body.output_size, env.action_spec, config.policy)
    collector = build_collector(config, env, policy)
    assert collector.description == f"step by step, native ({NO_LAPLACE})"
    assert isinstance(collector, StepwiseCollector)
    assert collector.collect(policy).num_steps == 8
    env.close()


@torch.no_grad()
def test_the_head_gives_the_numbers_of_its_native_side() -> None:
    """cpp/tests/laplace_head.cpp asserts the same ones."""
    head = LaplaceHead(2, MOVES, PolicyConfig())
    head.location.weight.copy_(torch.tensor([[1, 2], [-1, 0.5]]))
    head.location.bias.copy_(torch.tensor([0.25, -0.5]))
    distribution = head(0.25 * torch.arange(6.0).view(3, 2))
    action = distribution.sample(head.noise(torch.from_numpy(uniforms(7, [3], np.arange(3), 2, Stream(0))[0])))
    expected = [[0.794380, -2.934487], [2.608327, -1.014507], [2.210478, -2.001414]]
    np.testing.assert_allclose(action, expected, atol=2e-6)
    np.testing.assert_allclose(distribution.log_prob(action), [-5.207733, -1.495667, -5.331872], atol=2e-6)


def test_the_encoder_gives_the_numbers_of_its_native_side() -> None:
    """cpp/tests/radial_encoder.cpp asserts the same ones: features, and the gradient of the surrogate at ratio 1."""
    encoder = RadialEncoder(ArraySpec("box", (2,), "float32"), None, PolicyConfig())
    encoder.centers.data = torch.tensor([[0.5, 1], [-0.5, 0], [1, 2.5]])
    features = encoder(torch.tensor([[1, 2], [-1, 0.5]]))
    np.testing.assert_allclose(features.detach().sum(1), [1.067236, 0.688951], atol=2e-6)
    logits = features @ torch.tensor([[0.5, 1], [-1, 0.5], [0.25, -0.75]]) + torch.tensor([0.1, -0.2])
    log_prob = torch.log_softmax(logits, 1).gather(1, torch.tensor([[1], [0]])).squeeze(1)
    np.testing.assert_allclose(log_prob.detach(), [-1.2644774, -1.0703859], atol=2e-6)
    (gradient,) = torch.autograd.grad(-(torch.tensor([2.0, -1.0]) * log_prob).mean(), encoder.centers)
    expected = [[-0.0623448, -0.1921146], [0.2926904, -0.3072362], [-0.0004409, -0.5593186]]
    np.testing.assert_allclose(gradient, expected, atol=2e-6)


def test_an_encoder_from_outside_says_its_own_kind() -> None:
    policy = build()
    for body in (policy.actor_body, policy.critic_body):
        assert body is not None
        body.encoder = RadialEncoder(VECTOR, None, PolicyConfig())
    described = policy.actor_body.encoder.native(PlanBuilder(policy, "tanh"))
    assert described == [{"key": "", "kind": "radial", "name": "actor_body.encoder", "centers": 3, "size": 3}]
    assert plan_policy(policy) == NotNative("the native core has no encoder of kind 'radial'")


class Shifted(GaussianHead):
    """Computes something else and says nothing of it."""

    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Any:
        return super().forward(latent + 1)


class Renamed(GaussianHead):
    """Computes what its parent does, and says so."""

    def native(self, plan: PlanBuilder) -> Plain:
        return super().native(plan)


def test_a_subclass_does_not_inherit_its_parents_description() -> None:
    policy = build(head=Shifted(64, MOVES, PolicyConfig()))
    assert plan_policy(policy) == NotNative("the distribution Shifted has no native implementation")
    assert not isinstance(plan_policy(build(head=Renamed(64, MOVES, PolicyConfig()))), NotNative)


def test_a_forward_that_was_replaced_is_left_to_torch() -> None:
    policy = build()
    forward = policy.head.forward
    policy.head.forward = lambda latent, action_mask=None: forward(latent + 1, action_mask)  # type: ignore[method-assign]
    assert plan_policy(policy) == NotNative("the distribution GaussianHead has no native implementation")
    policy = build()
    layer: Any = policy.actor_body.trunk.layers[0]
    layer.forward = lambda features: features
    assert plan_policy(policy) == NotNative("the layer Linear has no native implementation")


def test_parts_are_unknown_unless_they_say_otherwise() -> None:
    class Silent(LaplaceHead):
        pass

    policy = build(head=Silent(64, MOVES, PolicyConfig()))
    assert plan_policy(policy) == NotNative("the distribution Silent has no native implementation")
    base: Any = super(LaplaceHead, policy.head)
    with pytest.raises(UnknownToCoreError, match="distribution Silent"):
        base.native(PlanBuilder(policy, "tanh"))


def test_the_core_lists_its_kinds() -> None:
    kinds = core().part_kinds()
    assert kinds["encoder"] == ["conv", "identity", "mlp", "set"]
    assert kinds["distribution"] == [
        "bernoulli",
        "beta",
        "categorical",
        "gaussian",
        "multi_discrete",
        "tanh_gaussian",
    ]
    assert kinds["memory"] == ["gru", "lstm", "none"]
    assert kinds["critic"] == ["quantile", "scalar"]
    assert kinds["term"] == ["clone", "entropy", "kl_penalty", "surrogate", "value"]
    assert kinds["gradient transform"] == ["variance_scaling"]
