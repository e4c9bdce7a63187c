import numpy as np
import pytest
import torch
from torch import nn

from surefoot.data.records import Knobs, Progress, Targets
from surefoot.data.specs import ArraySpec
from surefoot.learning.gradient import GradientStep
from surefoot.learning.schedules import Schedules
from surefoot.learning.transforms.variance_scaling import VarianceScaling
from surefoot.philox import permutations
from surefoot.policies.actor_critic import ActorCritic
from surefoot.rollout.minibatches import flatten, minibatches
from surefoot.settings.config import NormalizeConfig, OptimizerConfig, PolicyConfig
from surefoot.settings.layers import build_config

from .cases import Case, float64, golden
from .rollouts import one_row


class Numbers(nn.Module):
    """Parameters of one number each."""

    def __init__(self, *values: float) -> None:
        super().__init__()
        self.values = nn.ParameterList([nn.Parameter(float64([value])) for value in values])


@golden("lr_anneal")
def test_linear_schedule_of_a_run(case: Case):
    num_updates, rollout_size = case.given["n_updates"], 100
    schedules = Schedules(build_config({"optimizer.lr": case.given["lr0"], "schedules.lr": "linear"}))
    progress, rates = Progress(0, num_updates * rollout_size), []
    while not progress.is_done:
        rates.append(schedules.at(progress).lr)
        progress = progress.advance(rollout_size)
    case.agrees(rates, "cleanrl_baselines")
    case.differs(rates, "sb3_progress_remaining_after_rollout")


@golden("global_grad_clip")
def test_gradients_are_clipped_by_their_global_norm(case: Case):
    module = Numbers(0.0, 0.0)
    config = OptimizerConfig()
    gradient = GradientStep(module, config, case.given["max_norm"])
    gradient.add(sum((g[0] * p).sum() for g, p in zip(case.given["grads"], module.values, strict=True)))
    watched = gradient.step(Knobs(lr=config.lr))
    case.agrees(watched["grad_norm"], "norm")
    assert watched["skipped"] == 0
    # After the first step Adam's first moment is a known share of the gradient that it was given.
    clipped = torch.stack(list(gradient.state()["adam"]["exp_avg"].values())) / (1 - config.betas[0])
    case.agrees(clipped, "clipped")
    case.differs(clipped, "per_tensor")


@golden("grad_variance_scale")
@pytest.mark.parametrize(("sequence", "key"), [("seq_A", "A"), ("seq_B_constant", "B"), ("seq_C_flipping", "C")])
def test_gradients_are_scaled_by_their_variance(case: Case, sequence: str, key: str):
    given, expect = case.given, case.expect[f"elementwise_{key}"]
    settings = VarianceScaling.Settings(beta=given["beta"], epsilon=given["eps"], floor=0.0, warmup=0)
    scaling = VarianceScaling(settings, "vgs", {"weight": slice(0, 2)})
    for gradient in given[sequence]:
        scaled = scaling.apply(torch.tensor(gradient, dtype=torch.float32), Knobs({"vgs.strength": given["alpha"]}))
    moments = scaling.state()
    variance = moments["variance"]["weight"]
    np.testing.assert_allclose(variance, [expect["var"]] * 2, atol=case.atol)
    np.testing.assert_allclose(scaled / torch.tensor(gradient), [expect["scale"]] * 2, atol=case.atol)
    if "normalised" in expect:
        normalized = variance / (moments["mean"]["weight"].square() + given["eps"])
        np.testing.assert_allclose(normalized, [expect["normalised"]] * 2, rtol=case.atol)


@golden("adam_eps")
@pytest.mark.parametrize(("eps", "key"), [(1e-5, "eps_1e_5"), (1e-8, "eps_1e_8")])
def test_epsilon_of_adam(case: Case, eps: float, key: str):
    module = Numbers(0.0)
    gradient = GradientStep(module, OptimizerConfig(adam_eps=eps), None)
    for _ in range(case.given["step"]):
        gradient.add((case.given["g"] * module.values[0]).sum())
        gradient.step(Knobs(lr=case.given["lr"]))
    case.agrees(-module.values[0].squeeze(), key)


@golden("adam_eps")
def test_the_default_epsilon_is_that_of_ppo(case: Case):
    assert "eps_1e_5" in case.expect
    assert OptimizerConfig().adam_eps == 1e-5


@golden("minibatch_cover")
def test_minibatches_cover_every_sample_once(case: Case):
    num_samples, size = case.given["n"], case.given["minibatch"]
    rollout = one_row(reward=[0.0] * num_samples)
    rollout.value[:, 0] = torch.arange(num_samples)
    batch = flatten(rollout, Targets(rollout.value, rollout.value))
    order = torch.from_numpy(permutations(0, 0, 1, num_samples)[0])
    pieces = list(minibatches(batch, size, order))
    assert [len(piece) for piece in pieces] == case.expect["sizes"]
    assert sorted(torch.cat([piece.value for piece in pieces]).tolist()) == list(range(num_samples))


@golden("ortho_init")
def test_orthogonal_initialization(case: Case):
    width, inputs = case.given["shape"]
    box = ArraySpec("box", (inputs,), "float32")
    policy = ActorCritic(box, ArraySpec("box", (3,), "float32"), PolicyConfig(hidden=(width, width)), NormalizeConfig())
    for body in (policy.actor_body, policy.critic_body):
        first = body.trunk.layers[0].weight
        assert first.shape == (width, inputs)
        product = first.T @ first
        case.agrees(product.diagonal(), "WtW_diag")
        case.agrees(product - product.diagonal().diag(), "WtW_offdiag")
    mean, value = policy.head.mean.weight, policy.critic.head.weight
    gain = case.expect["policy_head_gain"]
    torch.testing.assert_close(mean @ mean.T, gain**2 * torch.eye(3), rtol=0, atol=gain * case.atol)
    case.agrees(value.norm(), "value_head_gain")
    for name, parameter in policy.named_parameters():
        if name.endswith("bias"):
            case.agrees(parameter, "bias")
