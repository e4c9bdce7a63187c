import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from surefoot.philox import Stream, uniforms
from surefoot.policies.distributions import Distribution, distributions
from surefoot.policies.distributions.bernoulli import Bernoulli
from surefoot.policies.distributions.beta import Beta
from surefoot.policies.distributions.categorical import Categorical, inverse_cdf, masked_log_softmax
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.distributions.tanh_gaussian import TanhGaussian

from .heads import ACTION_SPECS, DISCRETE, choices_of, drawn_noise, latents, lively_head

seeds = st.integers(0, 2**31)


def test_the_laws_know_every_registered_distribution():
    assert set(ACTION_SPECS) == set(distributions.names())


# --- Continuous kinds, one element at a time: a grid of raw actions with the width that each point stands for.


def one_element(kind: type[Distribution], *parameters: float) -> Distribution:
    return kind(*(torch.tensor([[parameter]], dtype=torch.float64) for parameter in parameters))


def normal_grid(mean: float, std: float) -> tuple[Tensor, Tensor]:
    """A fine grid of raw values, and the length of each cell, which tanh does or does not squash."""
    points = torch.linspace(mean - 12 * std, mean + 12 * std, 6001, dtype=torch.float64)
    return points, torch.full_like(points, float(points[1] - points[0]))


def tanh_grid(mean: float, std: float) -> tuple[Tensor, Tensor]:
    points, width = normal_grid(mean, std)
    # Density is on (-1, 1): a cell there is d tanh(u) wide.
    return points, width / points.cosh().square()


def beta_grid() -> tuple[Tensor, Tensor]:
    logits = torch.linspace(-30, 30, 6001, dtype=torch.float64)
    points = logits.sigmoid()
    return points, points * (1 - points) * (logits[1] - logits[0])


def check_density(distribution: Distribution, points: Tensor, width: Tensor, atol: float) -> None:
    """The density integrates to 1, and the entropy is -int p log p."""
    log_prob = distribution.log_prob(points.unsqueeze(-1))
    mass = log_prob.exp() * width
    assert mass.sum().item() == pytest.approx(1, abs=atol)
    assert distribution.entropy().item() == pytest.approx(-(mass * log_prob).sum().item(), abs=atol)


@given(st.floats(-5, 5), st.floats(0.01, 10))
def test_gaussian_integrates_to_one(mean, std):
    check_density(one_element(Gaussian, mean, std), *normal_grid(mean, std), atol=1e-9)


@given(st.floats(-3, 3), st.floats(0.01, 3))
def test_tanh_gaussian_integrates_to_one(mean, std):
    check_density(one_element(TanhGaussian, mean, std), *tanh_grid(mean, std), atol=2e-6)


@given(st.floats(1.05, 200), st.floats(1.05, 200))
def test_beta_integrates_to_one(alpha, beta):
    check_density(one_element(Beta, alpha, beta), *beta_grid(), atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "tanh_gaussian", "beta"])
@given(seed=seeds)
def test_elements_are_independent(name, seed):
    # The joint log-prob is the sum of those of each element alone; so is the entropy.
    head = lively_head(name, seed, scale=0.5)
    joint = head(latents(5, seed))
    action = joint.sample(drawn_noise(head, 5, seed))
    parameters = (joint.alpha, joint.beta) if name == "beta" else (joint.mean, joint.std.expand_as(joint.mean))
    alone = [type(joint)(*(p[:, i : i + 1] for p in parameters)) for i in range(3)]
    log_prob = sum(d.log_prob(action[:, i : i + 1]) for i, d in enumerate(alone))
    torch.testing.assert_close(joint.log_prob(action), log_prob, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(joint.entropy(), sum(d.entropy() for d in alone), rtol=1e-5, atol=1e-5)


# --- Discrete kinds: all actions can be listed.


def random_mask(name: str, rows: int, seed: int) -> Tensor:
    """Masks that leave every choice at least one action."""
    spec = ACTION_SPECS[name]
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for size in spec.sizes or (1,) * spec.size:
        part = torch.rand(rows, size, generator=generator) < 0.5
        if spec.sizes:
            part[torch.arange(rows), torch.randint(size, (rows,), generator=generator)] = True
        parts.append(part)
    return torch.cat(parts, dim=1)


def is_allowed(name: str, actions: Tensor, mask: Tensor) -> Tensor:
    """Whether each mask of `[B, choices]` allows its action."""
    if name == "bernoulli":
        return ((actions == 0) | mask).all(-1)
    begins = np.concatenate([[0], np.cumsum(ACTION_SPECS[name].sizes)[:-1]])
    return mask.gather(-1, actions.view(len(mask), -1) + torch.from_numpy(begins)).all(-1)


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("name", DISCRETE)
@given(seed=seeds, scale=st.sampled_from([0.0, 1.0, 5.0]))
def test_discrete_probabilities_sum_to_one(name, masked, seed, scale):
    head = lively_head(name, seed, scale).double()
    actions = choices_of(name)
    mask = random_mask(name, 1, seed).expand(len(actions), -1) if masked else None
    distribution = head(latents(1, seed).double().expand(len(actions), -1), mask)
    log_prob = distribution.log_prob(actions)
    prob = log_prob.exp()
    assert prob.sum().item() == pytest.approx(1, abs=1e-8)
    entropy = -torch.where(prob > 0, prob * log_prob, 0).sum()
    assert distribution.entropy()[0].item() == pytest.approx(entropy.item(), abs=1e-8)
    if masked:
        assert torch.equal(prob > 0, is_allowed(name, actions, mask))
    assert distribution.log_prob(distribution.mode())[0].item() == pytest.approx(log_prob.max().item(), abs=1e-8)


@pytest.mark.parametrize("name", DISCRETE)
@given(seed=seeds)
def test_masked_actions_are_never_sampled(name, seed):
    head = lively_head(name, seed, scale=3.0)
    rows = 64
    mask = random_mask(name, rows, seed)
    distribution = head(latents(rows, seed), mask)
    extremes = torch.tensor([0.0, 2**-24, 0.5, 1 - 2**-24])
    edges = extremes.repeat(rows // 4).unsqueeze(1).expand(rows, head.noise_size)
    for noise in (drawn_noise(head, rows, seed), edges):
        assert is_allowed(name, distribution.sample(noise), mask).all()
    assert is_allowed(name, distribution.mode(), mask).all()


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=9), st.data())
def test_inverse_cdf_never_leaves_the_support(logits, data):
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(logits), max_size=len(logits))))
    mask[data.draw(st.integers(0, len(logits) - 1))] = True
    top24 = data.draw(st.one_of(st.integers(0, 3), st.integers(2**24 - 4, 2**24 - 1), st.integers(0, 2**24 - 1)))
    log_probs = masked_log_softmax(torch.tensor([logits]), mask)
    choice = inverse_cdf(log_probs, torch.tensor([top24 * 2.0**-24]))
    assert mask[choice]


@pytest.mark.parametrize("name", distributions.names())
@given(seed=seeds)
@settings(max_examples=20)
def test_rows_of_a_batch_do_not_know_of_each_other(name, seed):
    head, features = lively_head(name, seed), latents(7, seed)
    noise = drawn_noise(head, 7, seed)
    together = head(features)
    actions = together.sample(noise)
    assert actions.shape == (7, *head.action_shape)
    assert actions.dtype == head.action_dtype
    assert together.log_prob(actions).shape == together.entropy().shape == (7,)
    for row in range(7):
        alone = head(features[row : row + 1])
        torch.testing.assert_close(alone.sample(noise[row : row + 1])[0], actions[row], rtol=1e-5, atol=1e-5)


# --- Samples from counted noise follow the distribution that log_prob describes. Fixed seeds: these cannot flake.

COUNT = 10_000


def repeated(name: str, seed: int, **parameters) -> tuple[Distribution, Tensor]:
    """One random distribution of a head, and many samples of it as a rollout would draw them."""
    head = lively_head(name, seed, **parameters)
    distribution = head(latents(1, seed).expand(COUNT, -1))
    return distribution, distribution.sample(drawn_noise(head, COUNT, seed))


def kolmogorov_smirnov(samples: Tensor, points: Tensor, mass: Tensor) -> float:
    """Largest distance between the samples' distribution function and the one that the density integrates to."""
    cumulative = np.interp(np.sort(samples.detach().numpy()), points.numpy(), (mass.cumsum(0) - mass / 2).numpy())
    steps = np.arange(len(samples) + 1) / len(samples)
    return float(max(np.abs(cumulative - steps[1:]).max(), np.abs(cumulative - steps[:-1]).max()))


LIMIT = 1.95 / math.sqrt(COUNT)  # one true sample in a thousand exceeds it


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["gaussian", "tanh_gaussian", "beta"])
def test_continuous_samples_follow_the_density(name, seed):
    distribution, samples = repeated(name, seed)
    for i in range(samples.shape[1]):
        if name == "beta":
            element = one_element(Beta, distribution.alpha[0, i].item(), distribution.beta[0, i].item())
            points, width = beta_grid()
        else:
            mean, std = distribution.mean[0, i].item(), distribution.std.expand_as(samples)[0, i].item()
            element = one_element(type(distribution), mean, std)
            points, width = (tanh_grid if name == "tanh_gaussian" else normal_grid)(mean, std)
        mass = element.log_prob(points.unsqueeze(-1)).exp() * width
        assert kolmogorov_smirnov(samples[:, i], points, mass) < LIMIT


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 4.0), (1.3, 1.1), (2.0, 30.0), (400.0, 300.0)])
def test_beta_samples_of_all_shapes_follow_the_density(alpha, beta):
    head = lively_head("beta")
    distribution = Beta(torch.full((COUNT, 3), alpha), torch.full((COUNT, 3), beta))
    samples = distribution.sample(drawn_noise(head, COUNT))
    points, width = beta_grid()
    mass = one_element(Beta, alpha, beta).log_prob(points.unsqueeze(-1)).exp() * width
    for i in range(3):
        assert kolmogorov_smirnov(samples[:, i], points, mass) < LIMIT
    # Elements and successive samples are uncorrelated.
    correlation = np.corrcoef(np.vstack([samples.T.numpy()[:, 1:], samples.T.numpy()[:, :-1]]))
    assert np.abs(correlation - np.eye(6)).max() < 4 / math.sqrt(COUNT)


@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_samples_follow_the_probabilities(name, seed, masked):
    head = lively_head(name, seed)
    actions = choices_of(name)
    mask = random_mask(name, 1, seed).expand(COUNT, -1) if masked else None
    distribution = head(latents(1, seed).expand(COUNT, -1), mask)
    samples = distribution.sample(drawn_noise(head, COUNT, seed))
    few = None if mask is None else mask[: len(actions)]
    probabilities = head(latents(1, seed).expand(len(actions), -1), few).log_prob(actions).exp()
    expected = COUNT * probabilities.detach().double().numpy()
    same = (samples.view(COUNT, 1, -1) == actions.view(1, len(actions), -1)).all(-1)
    counted = same.sum(0).numpy()
    assert counted.sum() == COUNT
    assert (counted[expected == 0] == 0).all()
    possible = expected > 0
    chi_square = ((counted - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = max(1, possible.sum() - 1)
    # Wilson and Hilferty: the 0.999 quantile of chi-square.
    limit = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert chi_square < limit


def test_independent_yes_no_choices_are_independent():
    head = lively_head("bernoulli")
    distribution = Bernoulli(torch.zeros(COUNT, 3))
    samples = distribution.sample(drawn_noise(head, COUNT)).double().numpy().T
    assert np.abs(np.corrcoef(samples) - np.eye(3)).max() < 4 / math.sqrt(COUNT)


def test_normal_noise_has_the_moments_of_a_normal():
    head = lively_head("gaussian")
    assert head.noise_size == 4, "an odd number of elements takes one more uniform, for the pair"
    drawn = uniforms(1, np.arange(COUNT), [5], head.noise_size, Stream.ACTION)
    noise = head.noise(torch.from_numpy(drawn)).double().flatten()
    deviation = 1 / math.sqrt(len(noise))
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(noise.pow(power).mean().item() - moment) < 4 * math.sqrt(variance) * deviation


@pytest.mark.parametrize("name", distributions.names())
def test_actions_reach_the_env_within_its_space(name):
    spec = ACTION_SPECS[name]
    head = lively_head(name, scale=4.0)
    _, samples = repeated(name, 0, scale=4.0)
    actions = head.to_env(samples[:500])
    assert actions.shape == (500, *spec.shape)
    if spec.sizes:
        start = torch.tensor(spec.start)
        assert ((actions.view(500, -1) >= start) & (actions.view(500, -1) < start + torch.tensor(spec.sizes))).all()
    else:
        low, high = (torch.as_tensor(bound) for bound in spec.bounds())
        assert ((actions >= low) & (actions <= high)).all()


def test_a_categorical_takes_its_probabilities_from_the_logits():
    logits = torch.tensor([[0.0, math.log(2), math.log(5)]])
    probabilities = Categorical(masked_log_softmax(logits, None)).log_probs.exp()
    torch.testing.assert_close(probabilities, torch.tensor([[1 / 8, 2 / 8, 5 / 8]]))
