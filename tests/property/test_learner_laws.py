import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.records import Batch, Knobs
from surefoot.data.specs import ArraySpec
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics import critics
from surefoot.policies.distributions import distributions
from surefoot.settings.config import Config, NormalizeConfig, OptimizerConfig, PolicyConfig, PPOConfig, TrainConfig

from .heads import ACTION_SPECS, drawn_noise

KNOBS = Knobs(lr=1e-3, clip=0.2, entropy_coef=0.01, value_coef=0.5)


def tiny_policy(distribution: str, seed: int) -> ActorCritic:
    config = PolicyConfig(hidden=(8,), distribution=distribution, orthogonal_init=False)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        spec = ArraySpec("box", (3,), "float32")
        return ActorCritic(spec, ACTION_SPECS[distribution], config, NormalizeConfig(returns=True))


def random_batch(policy: ActorCritic, size: int, seed: int) -> Batch:
    """Samples of a slightly different policy, so that some ratios are clipped."""
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randn(size, 3, generator=generator)
    start = torch.zeros(size, dtype=torch.bool)
    with torch.no_grad():
        output = policy(obs, (), start)
        action = output.distribution.sample(drawn_noise(policy.head, size, seed))
        shift = 0.3 * torch.randn(size, generator=generator)
        return Batch(
            obs=obs,
            action=action,
            log_prob=output.distribution.log_prob(action) + shift,
            value=output.value + shift,
            advantage=torch.randn(size, generator=generator),
            returns=output.value + torch.randn(size, generator=generator),
            episode_start=start,
            action_mask=None,
            state=(),
        )


def gradient_of(policy: ActorCritic, batch: Batch, config: PPOConfig) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """What one step of the learner watched, and its gradient."""
    policy = copy.deepcopy(policy)
    optimizer = OptimizerConfig()
    gradient = GradientStep(policy, optimizer, None)
    whole = Config.model_construct(ppo=config, normalize=NormalizeConfig(), train=TrainConfig())
    learner = Learner(policy, Objective.of(config), gradient, whole)
    watched = learner._step(batch, KNOBS)
    # After the first step Adam's first moment is a known share of the gradient.
    moments = learner.gradient.state()["adam"]["exp_avg"].values()
    return watched, torch.cat([moment.flatten() for moment in moments]) / (1 - optimizer.betas[0])


@pytest.mark.parametrize("advantage_norm", ["minibatch", "none"])
@pytest.mark.parametrize("distribution", distributions.names())
@given(size=st.integers(2, 23), micro=st.integers(1, 23), seed=st.integers(0, 2**31))
@settings(max_examples=10)
def test_micro_batches_add_up_to_the_one_batch(distribution, advantage_norm, size, micro, seed):
    policy = tiny_policy(distribution, seed)
    batch = random_batch(policy, size, seed)
    common = {"advantage_norm": advantage_norm, "clip_value": 0.2}
    whole = gradient_of(policy, batch, PPOConfig(**common))
    pieces = gradient_of(policy, batch, PPOConfig(micro_batch_size=micro, **common))
    assert whole[1].abs().max() > 1e-4
    torch.testing.assert_close(pieces, whole, rtol=1e-4, atol=1e-5)


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.1, 100)), min_size=1, max_size=4),
    st.integers(0, 2**31),
)
def test_popart_leaves_raw_predictions_where_they_were(rollouts, seed):
    generator = torch.Generator().manual_seed(seed)
    critic = critics["scalar"](6, PolicyConfig(), NormalizeConfig(returns=True))
    latent = torch.randn(16, 6, generator=generator)
    for mean, std in rollouts:
        before = critic.value(critic(latent)).detach()
        critic.absorb(mean + std * torch.randn(64, generator=generator))
        after = critic.value(critic(latent)).detach()
        # Exact but for rounding, which is relative to the mean that is taken off and added again.
        torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-6 * (abs(mean) + std) + 1e-4)
        assert critic.returns.count > 0


@given(st.integers(0, 2**31))
def test_without_return_normalization_absorbing_does_nothing(seed):
    critic = critics["scalar"](6, PolicyConfig(), NormalizeConfig(returns=False))
    before = copy.deepcopy(critic.state_dict())
    critic.absorb(100 * torch.randn(8, generator=torch.Generator().manual_seed(seed)))
    assert all(torch.equal(before[name], value) for name, value in critic.state_dict().items())
