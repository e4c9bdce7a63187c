"""S7: before the first gradient step, recomputed log-probs and values equal the stored ones, whatever the policy is."""

import pytest
import torch

from surefoot.data.records import Batch, Rollout, Targets
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.errors import PolicyError
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.distributions import distributions
from surefoot.policies.encoders import encoders
from surefoot.rollout.minibatches import flatten, minibatches
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from tests.envs.tasks import ACTIONS, FORMS, counters

TOLERANCE = 1e-5
MASKED = ["discrete", "shifted discrete", "multi_discrete", "shifted multi_discrete", "multi_binary", "binary grid"]


def built(env: VecEnv, normalize: NormalizeConfig | None = None, **config: object) -> ActorCritic:
    torch.manual_seed(1)
    policy = ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(**config), normalize or NormalizeConfig())
    with torch.no_grad():
        for name, parameter in policy.head.named_parameters():
            # Away from the near-uniform start, so that log-probs say which action they belong to.
            if name.endswith("weight"):
                parameter.mul_(50)
    return policy


def batch_of(rollout: Rollout) -> Batch:
    return flatten(rollout, Targets(torch.zeros_like(rollout.reward), torch.zeros_like(rollout.reward)))


@torch.no_grad()
def largest_differences(policy: ActorCritic, batch: Batch) -> tuple[float, float]:
    """Of log-probs and values, over shuffled minibatches of a size that does not divide the batch."""
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(2))
    differences = []
    for piece in minibatches(batch, 17, order):
        output = policy(piece.obs, piece.state, piece.episode_start, piece.action_mask)
        log_prob = output.distribution.log_prob(piece.action) - piece.log_prob
        differences.append(torch.stack((log_prob.abs().max(), (output.value - piece.value).abs().max())))
    log_prob, value = torch.stack(differences).amax(0).tolist()
    return log_prob, value


def assert_ratio_is_one(env: VecEnv, policy: ActorCritic, tolerance: float = TOLERANCE) -> None:
    collector = StepwiseCollector(env, policy, 11, seed=4)
    for _ in range(2):
        batch = batch_of(collector.collect(policy))
        assert batch.log_prob.std() > 1e-3, "log-probs must differ for this test to say anything"
        assert batch.value.std() > 1e-3
        assert max(largest_differences(policy, batch)) < tolerance
        policy.absorb_obs(batch.obs)


def possible(kind: str) -> list[str]:
    """The action spaces that a distribution takes: a new one needs no edit here."""
    taken = []
    for actions in ACTIONS:
        env = counters(1, actions=actions)
        try:
            built(env, distribution=kind)
        except PolicyError:
            continue
        taken.append(actions)
    return taken


@pytest.mark.parametrize("share_trunk", [False, True], ids=["separate", "shared"])
@pytest.mark.parametrize("kind", distributions.names())
def test_every_distribution(kind, share_trunk):
    spaces = possible(kind)
    assert spaces, f"no action space in tests/envs/tasks.py suits '{kind}'"
    for actions in spaces:
        env = counters(3, actions=actions)
        assert_ratio_is_one(env, built(env, distribution=kind, share_trunk=share_trunk))


@pytest.mark.parametrize("std", ["learned", "fixed", "state"])
@pytest.mark.parametrize("bounds", ["clip", "rescale"])
def test_every_gaussian(std, bounds):
    env = counters(3, actions="uneven box")
    gaussian = {"std": std, "action_bounds": bounds, "log_std": -0.5, "log_std_groups": {"1:2": 0.5}}
    assert_ratio_is_one(env, built(env, distribution=gaussian))


@pytest.mark.parametrize("actions", MASKED)
def test_with_masks(actions):
    env = counters(3, actions=actions, masks_in_info=True)
    policy = built(env)
    assert_ratio_is_one(env, policy)
    batch = batch_of(StepwiseCollector(env, policy, 11, seed=4).collect(policy))
    assert batch.action_mask is not None
    assert not batch.action_mask.all(1).any(), "every step forbids something"
    with torch.no_grad():
        unmasked = policy(batch.obs, batch.state, batch.episode_start, None).distribution.log_prob(batch.action)
    assert (unmasked - batch.log_prob).abs().max() > 100 * TOLERANCE, "the mask must matter"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True], ids=["raw", "normalized"])
def test_every_form_of_observation(form, normalize):
    env = counters(3, form=form)
    policy = built(env, NormalizeConfig(obs=normalize), share_trunk=False)
    assert_ratio_is_one(env, policy)


@pytest.mark.parametrize("kind", sorted({*encoders.names()} - {"none"}))  # none: tests/policies/test_unread_keys.py
def test_every_encoder(kind):
    used = 0
    for form in FORMS:
        env = counters(2, form=form)
        try:
            policy = built(env, encoder=kind, activation="elu")
        except PolicyError:
            continue
        used += 1
        assert_ratio_is_one(env, policy)
    assert used, f"no observation in tests/envs/tasks.py suits '{kind}'"


@pytest.mark.parametrize("share_trunk", [False, True], ids=["separate", "shared"])
def test_with_an_encoder_a_key(share_trunk):
    env = counters(3, form="picture dict")
    encoders_by_key = {"camera": {"kind": "conv", "features": 16}, "where": "mlp"}
    policy = built(env, NormalizeConfig(obs=True), encoders=encoders_by_key, share_trunk=share_trunk)
    assert_ratio_is_one(env, policy)


def test_with_normalized_returns():
    env = counters(3)
    policy = built(env, NormalizeConfig(obs=True, returns=True))
    policy.critic.absorb(torch.tensor([-40.0, 3.0, 90.0]))
    assert_ratio_is_one(env, policy, tolerance=1e-4)  # values are in tens here


def test_with_an_asymmetric_critic():
    env = counters(3, form="dict")
    policy = built(env, NormalizeConfig(obs=True), critic_obs=("luck",))
    assert_ratio_is_one(env, policy)
    batch = batch_of(StepwiseCollector(env, policy, 11, seed=4).collect(policy))
    other_luck = tree_map(torch.clone, batch.obs) | {"luck": batch.obs["luck"] + 1}
    with torch.no_grad():
        output = policy(other_luck, batch.state, batch.episode_start)
    torch.testing.assert_close(output.distribution.log_prob(batch.action), batch.log_prob, rtol=0, atol=TOLERANCE)
    assert (output.value - batch.value).abs().min() > TOLERANCE, "only the critic sees the luck"


@pytest.mark.parametrize("actions", ["discrete", "box"])
def test_in_bfloat16(actions):
    env = counters(3, actions=actions)
    policy = built(env, NormalizeConfig(obs=True), precision="bfloat16")
    assert_ratio_is_one(env, policy, tolerance=0.02)


def test_statistics_absorbed_too_early_would_show():
    """The other way round: these tests fail if the normalizer moves between acting and learning (S10)."""
    env = counters(3)
    policy = built(env, NormalizeConfig(obs=True))
    batch = batch_of(StepwiseCollector(env, policy, 11, seed=4).collect(policy))
    policy.absorb_obs(batch.obs)
    assert min(largest_differences(policy, batch)) > TOLERANCE
