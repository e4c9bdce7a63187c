import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn

from surefoot.data.records import Batch, Knobs
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Losses, Objective
from surefoot.learning.terms.surrogate import approx_kl, clipped_surrogate
from surefoot.learning.watch import CLIP_FRACTION, POLICY_LOSS
from surefoot.policies.critics import ValueTargets
from surefoot.policies.critics.scalar import ScalarCritic, clipped_value_loss
from surefoot.policies.distributions import Distribution
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.settings.config import Config, NormalizeConfig, OptimizerConfig, PolicyConfig, PPOConfig, TrainConfig

from .cases import Case, float64, golden


@dataclass(frozen=True)
class GivenLogProb(Distribution):
    """Log-probs as a case gives them, whatever the action."""

    given: Tensor

    def sample(self, noise: Tensor) -> Tensor:
        raise NotImplementedError

    mode = sample

    def log_prob(self, action: Tensor) -> Tensor:
        return self.given

    def entropy(self) -> Tensor:
        return torch.zeros_like(self.given)


def sample_batch(advantage: Tensor, log_prob: Tensor) -> Batch:
    zeros = torch.zeros_like(advantage)
    return Batch(
        obs=zeros.unsqueeze(-1),
        action=zeros.unsqueeze(-1),
        log_prob=log_prob,
        value=zeros,
        advantage=advantage,
        returns=zeros,
        episode_start=zeros.bool(),
        action_mask=None,
        state=(),
    )


class GivenOutput(Policy):
    """A policy that says what a case gives."""

    def __init__(self, log_prob: Tensor) -> None:
        super().__init__()
        self.critic = ScalarCritic(1, PolicyConfig(), NormalizeConfig())
        zeros = torch.zeros_like(log_prob)
        self.output = PolicyOutput(GivenLogProb(log_prob), zeros, zeros, ())

    def forward(self, *inputs: object) -> PolicyOutput:
        return self.output


def ppo_losses(log_prob: Tensor, batch: Batch, clip: float) -> Losses:
    knobs = Knobs(lr=1e-3, clip=clip, entropy_coef=0.0, value_coef=PPOConfig().value_coef)
    return Objective.of(PPOConfig())(GivenOutput(log_prob), batch, knobs)


@golden("ppo_clip_quadrants")
def test_clipped_surrogate_through_the_objective(case: Case):
    advantage, clip = float64(case.given["adv"]), case.given["clip"]
    old = float64([-0.3, -1.0, -2.0, 0.4, -0.7])
    new = (float64(case.given["ratio"]).log() + old).requires_grad_()
    losses = ppo_losses(new, sample_batch(advantage, old), clip)
    losses.total.backward()
    case.agrees(losses.watched[POLICY_LOSS], "loss")
    case.agrees(losses.total, "loss")
    case.differs(losses.watched[POLICY_LOSS], "clip_only_no_min")
    case.agrees(losses.watched[CLIP_FRACTION], "clip_fraction")
    case.agrees(-new.grad * len(advantage), "dobjective_dlogp")


@pytest.mark.parametrize(("clip", "fraction"), [(0.1, 1.0), (0.2, 0.5), (0.3, 0.25), (0.5, 0.0)])
def test_clip_fraction_counts_ratios_outside_on_either_side(clip: float, fraction: float):
    log_prob = float64([1.15, 0.85, 1.25, 0.65]).log()
    zeros = torch.zeros_like(log_prob)
    losses = ppo_losses(log_prob, sample_batch(zeros, zeros), clip)
    assert losses.watched[CLIP_FRACTION] == fraction


@golden("ppo_clip_quadrants")
def test_clipped_surrogate_sample_by_sample(case: Case):
    pairs = zip(case.given["ratio"], case.given["adv"], strict=True)
    objective = [-clipped_surrogate(float64([r]).log(), float64([a]), case.given["clip"]) for r, a in pairs]
    case.agrees(torch.stack(objective), "objective")


@golden("value_clip_case1", "value_clip_case2")
def test_value_clipping(case: Case):
    given = case.given
    value = float64([given["v"]]).requires_grad_()
    old, target = float64([given["v_old"]]), float64([given["target"]])
    loss = clipped_value_loss(value, old, target, given["eps"])
    loss.backward()
    case.agrees(loss, "max_loss")
    case.agrees(value.grad.squeeze(), "dloss_dv_of_max")
    case.agrees(clipped_value_loss(value, old, target, None), "unclipped")
    for bug in case.known_wrong:
        case.differs(loss, bug)
    if "half" in case.expect:
        case.agrees(PPOConfig().value_coef * loss, "half")


@golden("value_clip_normalised_returns")
def test_value_clipping_scales_with_the_deviation_of_returns(case: Case):
    given, std = case.given, case.given["ret_std"]
    critic = ScalarCritic(1, PolicyConfig(), NormalizeConfig(returns=True)).double()
    critic.returns.mean.fill_(given["ret_mean"])
    critic.returns.var.fill_(std**2)
    critic.returns.refresh()
    prediction = float64([given["v_raw"] / std])
    assert critic.value(prediction).item() == pytest.approx(given["v_raw"], abs=1e-8)
    targets = ValueTargets(float64([given["target_raw"]]), float64([given["v_old_raw"]]), given["eps"])
    loss = critic.loss(prediction, targets)
    case.agrees(loss, "loss_norm")
    case.differs(loss, "eps_applied_to_raw_values_norm_loss")
    assert loss.item() * std**2 == pytest.approx(case.expect["loss_raw"], abs=case.atol * std**2)
    # The same from the raw side: the clip range is eps deviations wide.
    clipped = given["target_raw"] - math.sqrt(loss.item()) * std
    assert clipped == pytest.approx(case.expect["v_clipped_raw"], abs=1e-7)
    assert clipped - given["v_old_raw"] == pytest.approx(case.expect["clip_delta_raw"], abs=1e-7)


@golden("kl_estimators")
def test_approx_kl_is_k3(case: Case):
    old, new = float64(case.given["p_old"]), float64(case.given["q_new"])
    # Both actions are equally likely under the old policy, so one sample of each gives the expectation.
    log_ratio = (new / old).log()
    kl = approx_kl(log_ratio)
    case.agrees(kl, "E_k3")
    case.agrees(kl, "exact_KL_old_new")
    case.agrees(torch.stack([approx_kl(one) for one in log_ratio]), "k3_per_action")
    case.agrees(-log_ratio, "k1_per_action")
    case.agrees(-log_ratio.mean(), "E_k1")
    case.differs(kl, "k3_with_swapped_sign_logratio")
    for other in ("E_k2", "reverse_KL_new_old"):
        assert abs(float(kl) - case.expect[other]) > 0.01


class RatioOne(Policy):
    """A Gaussian whose ratio is 1 on its own samples, so that a sample's loss is minus its advantage."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(1))
        self.critic = ScalarCritic(1, PolicyConfig(), NormalizeConfig())

    def forward(self, obs, state, episode_start, action_mask=None):
        prediction = self.critic(obs)
        return PolicyOutput(Gaussian(self.mean + 0 * obs, torch.ones(1)), prediction, prediction, state)


@pytest.fixture
def _float64_by_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def accumulated_loss(advantage: Tensor, micro_batch_size: int | None) -> tuple[Tensor, Tensor]:
    """Policy loss and gradient of one step of the learner over micro-batches."""
    policy = RatioOne()
    config = PPOConfig(micro_batch_size=micro_batch_size, advantage_norm="none", max_grad_norm=None)
    gradient = GradientStep(policy, OptimizerConfig(), config.max_grad_norm)
    whole = Config.model_construct(ppo=config, normalize=NormalizeConfig(), train=TrainConfig())
    learner = Learner(policy, Objective.of(config), gradient, whole)
    action = torch.linspace(-1, 2, len(advantage)).unsqueeze(-1)
    batch = replace(sample_batch(advantage, torch.zeros_like(advantage)), action=action)
    log_prob = policy(batch.obs, (), batch.episode_start).distribution.log_prob(action).detach()
    knobs = Knobs(lr=1e-3, clip=0.2, entropy_coef=0.0, value_coef=0.0)
    watched = learner._step(replace(batch, log_prob=log_prob), knobs)
    # After the first step Adam's first moment is a known share of the gradient.
    return watched[POLICY_LOSS], gradient.state()["adam"]["exp_avg"]["mean"]


@golden("grad_accum_mean_of_means")
@pytest.mark.usefixtures("_float64_by_default")
def test_micro_batches_weigh_by_their_size(case: Case):
    small, large = case.given["micro"]
    # The last micro-batch is the smaller one.
    advantage = -torch.cat([torch.full((part["n"],), part["mean_loss"]) for part in (large, small)])
    loss, gradient = accumulated_loss(advantage, micro_batch_size=large["n"])
    case.agrees(loss, "loss")
    case.differs(loss, "mean_of_means")
    torch.testing.assert_close(gradient, accumulated_loss(advantage, None)[1])


@golden("grad_accum_ragged")
@pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 4])
@pytest.mark.usefixtures("_float64_by_default")
def test_steps_weigh_alike_however_long_their_sequence(case: Case, micro_batch_size: int):
    lengths = torch.tensor(case.given["seq_lengths"])
    advantage = float64(case.given["adv"]).repeat_interleave(lengths)
    loss, gradient = accumulated_loss(advantage, micro_batch_size)
    case.agrees(loss, "loss")
    case.differs(loss, "micro_batch_1_mean_of_means")
    torch.testing.assert_close(gradient, accumulated_loss(advantage, None)[1])
