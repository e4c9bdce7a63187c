"""KL divergences of all distributions: against PyTorch, against samples, and their gradients."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch import distributions as torchs

from surefoot.errors import PolicyError
from surefoot.policies.distributions import Distribution, build_head, distributions
from surefoot.policies.distributions.bernoulli import Bernoulli
from surefoot.policies.distributions.beta import Beta
from surefoot.policies.distributions.categorical import Categorical, masked_log_softmax
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.distributions.multi_discrete import MultiCategorical
from surefoot.policies.distributions.tanh_gaussian import TanhGaussian
from surefoot.settings.config import PolicyConfig
from tests.policies.laplace_head import LaplaceHead
from tests.property.heads import ACTION_SPECS, DISCRETE, LATENT, choices_of, drawn_noise, latents, lively_head
from tests.property.test_distribution_laws import random_mask

ROWS = 6


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def positive(*shape: int, seed: int = 0) -> Tensor:
    return numbers(*shape, seed=seed).exp()


def gaussian(seed: int) -> tuple[Distribution, torchs.Distribution]:
    mean, std = numbers(ROWS, 3, seed=seed), positive(3, seed=seed)
    return Gaussian(mean, std), torchs.Normal(mean, std)


def gaussian_of_state(seed: int) -> tuple[Distribution, torchs.Distribution]:
    mean, std = numbers(ROWS, 3, seed=seed), positive(ROWS, 3, seed=seed)
    return Gaussian(mean, std), torchs.Normal(mean, std)


def tanh_gaussian(seed: int) -> tuple[Distribution, torchs.Distribution]:
    mean, std = numbers(ROWS, 3, seed=seed), positive(ROWS, 3, seed=seed)
    return TanhGaussian(mean, std), torchs.Normal(mean, std)


def beta(seed: int) -> tuple[Distribution, torchs.Distribution]:
    alpha, beta = (1 + positive(ROWS, 3, seed=seed + shift) for shift in (0, 10))
    return Beta(alpha, beta), torchs.Beta(alpha, beta)


def categorical(seed: int) -> tuple[Distribution, torchs.Distribution]:
    logits = numbers(ROWS, 4, seed=seed)
    return Categorical(masked_log_softmax(logits, None)), torchs.Categorical(logits=logits)


def multi_discrete(seed: int) -> tuple[Distribution, torchs.Distribution]:
    logits = numbers(ROWS, 2, 4, seed=seed)
    return MultiCategorical(masked_log_softmax(logits, None)), torchs.Categorical(logits=logits)


def bernoulli(seed: int) -> tuple[Distribution, torchs.Distribution]:
    logits = 3 * numbers(ROWS, 5, seed=seed)
    return Bernoulli(logits), torchs.Bernoulli(logits=logits)


KINDS = [gaussian, gaussian_of_state, tanh_gaussian, beta, categorical, multi_discrete, bernoulli]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_against_pytorch(kind: Callable[[int], tuple[Distribution, torchs.Distribution]]):
    (p, theirs_p), (q, theirs_q) = kind(1), kind(2)
    expected = torchs.kl_divergence(theirs_p, theirs_q)
    expected = expected if expected.dim() == 1 else expected.sum(-1)
    torch.testing.assert_close(p.kl_divergence(q), expected, rtol=1e-9, atol=1e-9)
    assert (p.kl_divergence(q) > 0).all()
    assert torch.equal(p.kl_divergence(p), torch.zeros(ROWS, dtype=torch.float64))


@pytest.mark.parametrize("std", ["learned", "fixed", "state"])
@pytest.mark.parametrize("name", ["gaussian", "tanh_gaussian"])
def test_every_mode_of_the_standard_deviation(name: str, std: str):
    head = build_head(LATENT, ACTION_SPECS[name], PolicyConfig(distribution={"kind": name, "std": std}))
    p, q = head(latents(ROWS, 1)), head(latents(ROWS, 2))
    mean = p.kl_divergence(q)
    assert mean.shape == (ROWS,)
    theirs = torchs.kl_divergence(torchs.Normal(p.mean, p.std), torchs.Normal(q.mean, q.std)).sum(-1)
    torch.testing.assert_close(mean, theirs, rtol=1e-4, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("name", distributions.names())
def test_against_samples(name: str):
    """The mean of log p - log q over samples of p; this also covers tanh, of which PyTorch has none."""
    head, count = lively_head(name, seed=3, scale=0.3), 20_000
    p, q = (head(latents(1, seed).expand(count, -1)) for seed in (1, 2))
    drawn = p.sample(drawn_noise(head, count))
    ratio = p.log_prob(drawn) - q.log_prob(drawn)
    error = float(ratio.std() / count**0.5)
    assert float(ratio.mean()) == pytest.approx(float(p.kl_divergence(q)[0]), abs=5 * error + 1e-6)


@pytest.mark.parametrize("name", DISCRETE)
def test_masked_actions_count_nothing(name: str):
    head, actions = lively_head(name, seed=1).double(), choices_of(name)
    mask = random_mask(name, 1, seed=2).expand(len(actions), -1)
    features = [latents(1, seed).double().expand(len(actions), -1).clone().requires_grad_() for seed in (1, 2)]
    p, q = (head(latent, mask) for latent in features)
    log_p, log_q = p.log_prob(actions), q.log_prob(actions)
    expected = torch.where(log_p.exp() > 0, log_p.exp() * (log_p - log_q), 0).sum()
    assert p.kl_divergence(q)[0].item() == pytest.approx(expected.item(), abs=1e-9)
    for slope in torch.autograd.grad(p.kl_divergence(q).sum(), features):
        assert torch.isfinite(slope).all()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", distributions.names())
def test_gradients_against_finite_differences(name: str, masked: bool):
    head = lively_head(name, seed=1, scale=0.5).double()
    mask = random_mask(name, 2, seed=5) if masked and name in DISCRETE else None

    def divergence(first: Tensor, second: Tensor) -> Tensor:
        return head(first, mask).kl_divergence(head(second, mask))

    assert torch.autograd.gradcheck(divergence, [latents(2, seed).double().requires_grad_() for seed in (1, 2)])


@pytest.mark.parametrize("difference", [1e-2, 1e-3, 1e-4])
def test_small_differences_of_the_standard_deviation_keep_their_digits(difference: float):
    p, q = (Gaussian(torch.zeros(1, 1), torch.tensor([std])) for std in (1.0, 1 + difference))
    exact = torchs.kl_divergence(*(torchs.Normal(0.0, one.std.double()) for one in (p, q)))
    assert float(p.kl_divergence(q)) == pytest.approx(float(exact), rel=0.01)


def test_a_distribution_without_one_is_named():
    head = LaplaceHead(LATENT, ACTION_SPECS["gaussian"], PolicyConfig())
    p = head(latents(ROWS))
    message = r"the distribution \w+ has no KL divergence; define kl_divergence\(other\)"
    with pytest.raises(PolicyError, match=message) as caught:
        p.kl_divergence(p)
    assert type(p).__name__ in str(caught.value)
