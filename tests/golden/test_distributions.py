import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from surefoot.data.records import Batch, Knobs
from surefoot.data.specs import ArraySpec
from surefoot.envs.protocol import new_slot
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError
from surefoot.learning.terms import Objective
from surefoot.learning.watch import CLIP_FRACTION, KL
from surefoot.philox import Stream, uniforms
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.distributions import build_head, distributions
from surefoot.policies.distributions.beta import Beta, BetaHead
from surefoot.policies.distributions.categorical import Categorical, masked_log_softmax
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.distributions.multi_discrete import MultiDiscreteHead
from surefoot.policies.distributions.tanh_gaussian import TanhGaussian, log_det_tanh
from surefoot.settings.config import NormalizeConfig, PolicyConfig, PPOConfig

from ..property.heads import ACTION_SPECS
from .cases import Case, float64, golden


def box(low: float, high: float) -> ArraySpec:
    return ArraySpec("box", (1,), "float32", low, high)


def to_env(distribution: str, spec: ArraySpec, raw: torch.Tensor) -> torch.Tensor:
    """What the env gets, in float64."""
    head = build_head(1, spec, PolicyConfig(distribution=distribution)).double()
    return head.to_env(raw)


def divergence(p, q, points: torch.Tensor) -> float:
    """KL(p || q) from log-probs alone, by the trapezoidal rule."""
    log_p, log_q = (d.log_prob(points.unsqueeze(-1)) for d in (p, q))
    return float(torch.trapezoid(log_p.exp() * (log_p - log_q), points))


@golden("gauss")
def test_gaussian(case: Case):
    given = case.given
    gaussian = Gaussian(float64([given["mu"]]), float64(given["log_std"]).exp())
    log_prob = gaussian.log_prob(float64([given["a"]])).squeeze()
    case.agrees(log_prob, "log_prob")
    case.differs(log_prob, "mean_over_dims")
    case.agrees(gaussian.entropy().squeeze(), "entropy")


@golden("gauss_kl")
def test_gaussian_divergence_from_log_probs(case: Case):
    p, q = (Gaussian(*(float64([[part]]) for part in case.given[name])) for name in ("p", "q"))
    points = torch.linspace(-40, 40, 8001, dtype=torch.float64)
    case.agrees(divergence(p, q, points), "KL_p_q")
    case.agrees(divergence(q, p, points), "KL_q_p")


@golden("tanh_squash")
def test_tanh_gaussian(case: Case):
    given, (low, high) = case.given, case.given["action_range"]
    raw = float64([[given["u"]]])
    squashed = TanhGaussian(float64([[given["mu"]]]), float64([[given["sigma"]]]))
    case.agrees(to_env("tanh_gaussian", box(-1, 1), raw).squeeze(), "a_unit")
    case.agrees(to_env("tanh_gaussian", box(low, high), raw).squeeze(), "a_env")
    case.agrees(log_det_tanh(raw).squeeze(), "jacobian_log")
    log_prob = squashed.log_prob(raw).squeeze()
    case.agrees(log_prob, "log_prob_unit")
    case.differs(log_prob, "no_jacobian")
    # Densities are kept on (-1, 1); the stretch to the env's bounds is a constant, which ratios cancel.
    case.agrees(log_prob - math.log((high - low) / 2), "log_prob_env")


@golden("tanh_squash_saturated")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_saturated_tanh(case: Case, dtype: torch.dtype):
    raw = torch.tensor([[case.given["u"]]], dtype=dtype)
    log_det = log_det_tanh(raw).squeeze()
    squashed = TanhGaussian(torch.zeros(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype))
    log_prob = squashed.log_prob(raw).squeeze()
    if dtype is torch.float64:
        case.agrees(log_det, "log_det")
        case.agrees(log_prob, "log_prob")
    else:  # float32 keeps 7 digits, where log(1 - tanh^2) keeps none
        assert raw.tanh().item() == case.expect["tanh_f32"]
        assert log_det.item() == pytest.approx(case.expect["log_det"], rel=1e-6)
        assert log_prob.item() == pytest.approx(case.expect["log_prob"], rel=1e-6)
        assert case.known_wrong["f32_log_1_minus_a2"] == str((1 - raw.tanh() ** 2).log().item())
    case.differs(log_det, "sb3_eps_1e_6_log_det")
    case.differs(log_prob, "sb3_eps_log_prob")


@golden("action_clip")
def test_the_env_gets_the_clipped_action_and_the_log_prob_is_of_the_raw_one(case: Case):
    given = case.given
    raw = float64([[given["a_raw"]]])
    gaussian = Gaussian(float64([[given["mu"]]]), float64([[given["sigma"]]]))
    case.agrees(to_env("gaussian", box(given["low"], given["high"]), raw).squeeze(), "a_env")
    log_prob = gaussian.log_prob(raw).squeeze()
    case.agrees(log_prob, "log_prob_stored")
    case.differs(log_prob, "log_prob_of_clipped")
    case.differs(log_prob, "clipped_action_policy_gradient_logp")
    # Whoever mixes the two is wrong by this factor in the ratio.
    clipped = gaussian.log_prob(raw.clamp(given["low"], given["high"])).squeeze()
    assert float((clipped - log_prob).exp()) == pytest.approx(case.known_wrong["ratio_error_factor"])


@golden("beta")
def test_beta(case: Case):
    given, (low, high) = case.given, case.given["action_range"]
    beta = Beta(float64([[given["alpha"]]]), float64([[given["beta"]]]))
    raw, log_width = float64([[given["x"]]]), math.log(high - low)
    case.agrees(beta.log_prob(raw).squeeze(), "log_prob_unit")
    case.agrees(beta.log_prob(raw).squeeze() - log_width, "log_prob_env")
    case.agrees(beta.mean().squeeze(), "mean")
    case.agrees(beta.mode().squeeze(), "mode")
    case.agrees(beta.entropy().squeeze(), "entropy_unit")
    case.agrees(beta.entropy().squeeze() + log_width, "entropy_env")
    case.agrees(to_env("beta", box(low, high), raw).squeeze(), "a_env")
    case.agrees(to_env("beta", box(low, high), beta.mean()).squeeze(), "mean_env")


@golden("beta")
def test_concentrations_of_the_beta_head(case: Case):
    head = BetaHead(1, box(*case.given["action_range"]), PolicyConfig()).double()
    torch.nn.init.zeros_(head.concentrations.weight)
    beta = head(float64([[1.0]]))
    assert beta.alpha.item() == beta.beta.item() == pytest.approx(1 + math.log(2), abs=case.atol)


@golden("beta_kl")
def test_beta_divergence_from_log_probs(case: Case):
    p, q = (Beta(*(float64([[part]]) for part in case.given[name])) for name in ("p", "q"))
    # In x = sigmoid(t) the integrand dies off smoothly at both ends.
    points = torch.linspace(-30, 30, 2001, dtype=torch.float64)
    raw = points.sigmoid().unsqueeze(-1)
    log_p, log_q = p.log_prob(raw), q.log_prob(raw)
    integrand = log_p.exp() * (log_p - log_q) * (raw * (1 - raw)).squeeze(-1)
    case.agrees(torch.trapezoid(integrand, points), "KL")


@golden("beta_edges")
def test_beta_is_finite_at_its_edges(case: Case):
    beta = Beta(float64([[case.given["alpha"]]] * 2), float64([[case.given["beta"]]] * 2))
    edges = float64(case.given["x"]).unsqueeze(-1)
    assert case.expect["raw_log_prob"] == ["-inf", "-inf"]
    case.agrees(beta.log_prob(edges), "clamped_log_prob")


@golden("beta_edges")
def test_a_beta_without_slope_at_its_edge(case: Case):
    eps = case.given["eps"]
    flat = Beta(float64([[1.0]]), float64([[3.0]]))
    log_prob = flat.log_prob(float64([[0.0]])).item()
    # The density at the clamped sample, which differs from that at 0 by 2 log(1 - eps).
    assert log_prob == pytest.approx(case.expect["alpha1_beta3_at_0"] + 2 * math.log1p(-eps), abs=case.atol)


@golden("beta_edges")
def test_float32_samples_stay_inside(case: Case):
    concentrations = torch.tensor([[1.0], [1e4], [3.0]], requires_grad=True)
    beta = Beta(concentrations, concentrations.flip(0))
    head = BetaHead(1, box(0, 1), PolicyConfig())
    noise = head.noise(torch.tensor([[0.0], [0.5], [1 - 2**-24]]).expand(3, head.noise_size))
    for action in (beta.sample(noise).detach(), torch.zeros(3, 1), torch.ones(3, 1), torch.full((3, 1), 1 - 1e-8)):
        assert ((beta.sample(noise) > 0) & (beta.sample(noise) < 1)).all()
        log_prob = beta.log_prob(action)
        (gradient,) = torch.autograd.grad(log_prob.sum(), concentrations)
        assert log_prob.isfinite().all(), case.known_wrong
        assert gradient.isfinite().all(), case.known_wrong


def test_a_uniform_beta_has_a_mode():
    # 1 + softplus of a very negative number is exactly 1 in float32.
    assert Beta(torch.ones(1, 1), torch.ones(1, 1)).mode().item() == 0.5


@golden("masked_categorical")
def test_masked_categorical(case: Case):
    mask = float64(case.given["mask"]).bool()
    categorical = Categorical(masked_log_softmax(float64(case.given["logits"]), mask))
    case.agrees(categorical.log_probs.exp(), "probs")
    case.agrees(categorical.log_probs[mask], "log_probs_valid")
    assert case.known_wrong["neg_inf_entropy"].startswith("nan")
    case.agrees(categorical.entropy(), "entropy")  # agrees() refuses NaN


@golden("masked_categorical")
def test_masked_entropy_has_finite_gradients(case: Case):
    logits = torch.tensor(case.given["logits"], requires_grad=True)
    categorical = Categorical(masked_log_softmax(logits, torch.tensor(case.given["mask"]).bool()))
    (categorical.entropy() + categorical.log_prob(torch.tensor(2))).backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[1] == 0


@golden("masked_categorical")
@pytest.mark.parametrize("kind", ["discrete", "multi_discrete"])
def test_a_mask_that_forbids_everything_names_the_env(case: Case, kind: str):
    sizes = (6,) if kind == "discrete" else (3, 3)
    spec = ArraySpec(kind, (), "int64", sizes=sizes)
    env = SimpleNamespace(action_spec=spec, describe=lambda row: f"env {row}")
    slot = new_slot(2, ArraySpec("box", (1,), "float32"), 6)
    slot.action_mask[:] = np.tile(np.array(case.given["mask"], dtype=bool), (2, 2))
    check_step(env, slot, 7)
    slot.action_mask[1, slice(None) if kind == "discrete" else slice(3, 6)] = False
    with pytest.raises(EnvError, match=r"env 1 .*mask"):
        check_step(env, slot, 7)


@golden("multidiscrete")
def test_multi_discrete(case: Case):
    sizes = tuple(len(part) for part in case.given["logits"])
    spec = ArraySpec("multi_discrete", (2,), "int64", sizes=sizes, start=(0, 0))
    head = MultiDiscreteHead(1, spec, PolicyConfig()).double()
    head.logits.weight.data.zero_()
    head.logits.bias.data.copy_(float64(case.given["logits"]).flatten())
    distribution = head(float64([[1.0]]))
    case.agrees(distribution.log_prob(torch.tensor([case.given["action"]])).squeeze(), "log_prob")
    case.agrees(distribution.entropy().squeeze(), "entropy")


@golden("first_epoch_ratio_is_one")
@pytest.mark.parametrize("distribution", distributions.names())
@pytest.mark.parametrize("share_trunk", [False, True], ids=["own trunks", "shared trunk"])
def test_recomputed_log_probs_are_the_stored_ones(case: Case, distribution: str, share_trunk: bool):
    spec = ACTION_SPECS[distribution]
    obs_spec = ArraySpec("box", (5,), "float32")
    config = PolicyConfig(hidden=(32, 32), distribution=distribution, share_trunk=share_trunk, orthogonal_init=False)
    policy = ActorCritic(obs_spec, spec, config, NormalizeConfig(obs=True, returns=True))
    steps, rows = 16, 6
    obs = torch.from_numpy(uniforms(3, np.arange(steps), np.arange(rows), 5, Stream.BOOTSTRAP)) * 4 - 1
    policy.absorb_obs(obs.flatten(0, 1))
    drawn = uniforms(3, np.arange(steps), np.arange(rows), policy.head.noise_size, Stream.ACTION)
    noise = policy.head.noise(torch.from_numpy(drawn))
    with torch.no_grad():
        acted = [policy(obs[t], (), torch.zeros(rows, dtype=torch.bool)) for t in range(steps)]
        actions = [output.distribution.sample(noise[t]) for t, output in enumerate(acted)]
        log_probs = [output.distribution.log_prob(action) for output, action in zip(acted, actions, strict=True)]
    value = torch.cat([output.value for output in acted])
    batch = Batch(
        obs=obs.flatten(0, 1),
        action=torch.cat(actions),
        log_prob=torch.cat(log_probs),
        value=value,
        advantage=torch.ones_like(value),
        returns=value + 1,
        episode_start=torch.zeros_like(value, dtype=torch.bool),
        action_mask=None,
        state=(),
    )
    output = policy(batch.obs, (), batch.episode_start)
    ratio = (output.distribution.log_prob(batch.action) - batch.log_prob).exp()
    knobs = Knobs(lr=1e-3, clip=0.2, entropy_coef=0.0, value_coef=0.5)
    watched = Objective.of(PPOConfig())(policy, batch, knobs).watched
    case.agrees((ratio - 1).abs().max(), "max_abs_ratio_minus_1")
    case.agrees(watched[KL], "approx_kl")
    case.agrees(watched[CLIP_FRACTION], "clip_fraction")
    torch.testing.assert_close(output.value, batch.value, rtol=0, atol=case.atol)
