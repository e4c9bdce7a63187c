import copy
import math
from dataclasses import replace

import pytest
import torch

from surefoot.data.records import Knobs, Rollout, RolloutStats, Targets
from surefoot.data.specs import ArraySpec
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.policies.actor_critic import ActorCritic
from surefoot.settings.config import Config, NormalizeConfig, OptimizerConfig, PolicyConfig, PPOConfig, TrainConfig

STEPS, ROWS = 16, 4
KNOBS = Knobs(lr=3e-3, clip=0.2, entropy_coef=0.0, value_coef=0.5)


def build(ppo: PPOConfig | None = None, **normalize) -> Learner:
    ppo = ppo or PPOConfig(epochs=3, batch_size=16)
    config, normal = PolicyConfig(hidden=(16,)), NormalizeConfig(**normalize)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        policy = ActorCritic(ArraySpec("box", (3,), "float32"), ArraySpec("box", (2,), "float32"), config, normal)
    gradient = GradientStep(policy, OptimizerConfig(), ppo.max_grad_norm)
    whole = Config.model_construct(ppo=ppo, normalize=normal, train=TrainConfig(seed=5))
    return Learner(policy, Objective.of(ppo), gradient, whole)


def collected(policy: ActorCritic, valid: torch.Tensor | None = None) -> tuple[Rollout, Targets]:
    """A rollout in which acting to the right pays."""
    generator = torch.Generator().manual_seed(1)
    obs = 5 + 2 * torch.randn(STEPS, ROWS, 3, generator=generator)
    with torch.no_grad():
        output = policy(obs.flatten(0, 1), (), torch.zeros(STEPS * ROWS, dtype=torch.bool))
        action = output.distribution.sample(torch.randn(STEPS * ROWS, 2, generator=generator))
        log_prob = output.distribution.log_prob(action)
    flags = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    advantage = action[:, 0].view(STEPS, ROWS)
    value = output.value.view(STEPS, ROWS)
    rollout = Rollout(
        obs=obs,
        action=action.view(STEPS, ROWS, 2),
        log_prob=log_prob.view(STEPS, ROWS),
        value=value,
        reward=advantage,
        terminated=flags,
        truncated=flags,
        final_value=torch.zeros(STEPS, ROWS),
        episode_start=flags,
        valid=~flags if valid is None else valid,
        last_value=torch.zeros(ROWS),
        action_mask=None,
        state=(),
        stats=RolloutStats(STEPS * ROWS, (), ()),
    )
    return rollout, Targets(advantage - advantage.mean(), value + 10 + advantage)


def weights(learner: Learner) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in learner.policy.parameters()])


def test_an_update_moves_the_policy_toward_what_paid():
    learner = build()
    rollout, targets = collected(learner.policy)
    obs, start = rollout.obs.flatten(0, 1), rollout.episode_start.flatten()
    before = learner.policy(obs, (), start)
    learned = learner.learn(rollout, targets, KNOBS)
    after = learner.policy(obs, (), start)
    assert after.distribution.mean[:, 0].mean() > before.distribution.mean[:, 0].mean() + 0.01
    error_before, error_after = ((out.value - targets.returns.flatten()).square().mean() for out in (before, after))
    assert error_after < error_before
    assert learned.epochs == 3
    assert learned.approx_kl > 0
    assert learned.grad_norm > 0
    assert learned.skipped_steps == 0
    assert (learned.lr, learned.clip, learned.entropy_coef) == (KNOBS.lr, KNOBS.clip, KNOBS.entropy_coef)
    assert learned.std == pytest.approx(after.distribution.std.mean().item(), abs=1e-6)
    assert learner.update == 1


def test_updates_are_reproducible_and_shuffled_anew_each_time():
    first, second, later = build(), build(), build()
    later.update = 1
    for learner in (first, second, later):
        learner.learn(*collected(learner.policy), KNOBS)
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(later))


def test_invalid_samples_teach_nothing():
    valid = torch.rand(STEPS, ROWS, generator=torch.Generator().manual_seed(2)) < 0.6
    clean, dirty = build(obs=True, returns=True), build(obs=True, returns=True)
    rollout, targets = collected(clean.policy, valid)
    clean.learn(rollout, targets, KNOBS)

    def spoiled(values):
        keep = valid.view(STEPS, ROWS, *([1] * (values.dim() - 2)))
        return torch.where(keep, values, math.nan)

    spoiled_rollout = replace(
        rollout, obs=spoiled(rollout.obs), action=spoiled(rollout.action), value=spoiled(rollout.value)
    )
    dirty.learn(spoiled_rollout, Targets(spoiled(targets.advantage), spoiled(targets.returns)), KNOBS)
    assert torch.equal(weights(clean), weights(dirty))
    assert all(
        torch.equal(a, b)
        for a, b in zip(clean.policy.state_dict().values(), dirty.policy.state_dict().values(), strict=True)
    )


def test_the_update_stops_after_the_epoch_that_passed_the_target():
    ppo = PPOConfig(epochs=10, batch_size=16, target_kl=1e-3)
    learner = build(ppo)
    learned = learner.learn(*collected(learner.policy), Knobs(KNOBS, lr=0.03))
    assert learned.epochs < 10
    assert learned.approx_kl > 1e-3
    patient = build(ppo.model_copy(update={"target_kl": 1e3}))
    assert patient.learn(*collected(patient.policy), KNOBS).epochs == 10


def test_bad_samples_are_skipped_counted_and_leave_the_weights_alone():
    learner = build()
    rollout, targets = collected(learner.policy)
    before = weights(learner)
    learned = learner.learn(rollout, replace(targets, advantage=targets.advantage * math.nan), KNOBS)
    assert learned.skipped_steps == 3 * STEPS * ROWS // 16
    assert torch.equal(weights(learner), before)
    learned = learner.learn(rollout, targets, KNOBS)
    assert learned.skipped_steps == 0
    assert weights(learner).isfinite().all()


def test_observation_statistics_move_only_after_the_update():
    learner = build(PPOConfig(epochs=1, batch_size=STEPS * ROWS), obs=True)
    rollout, targets = collected(learner.policy)
    (normalizer,) = learner.policy.preprocess.normalizers.values()
    seen = []
    hook = normalizer.register_forward_pre_hook(lambda module, _: seen.append(float(module.count)))
    learned = learner.learn(rollout, targets, KNOBS)
    hook.remove()
    assert seen[0] == 0, "the policy learns with the numbers it acted on"
    assert normalizer.count == STEPS * ROWS
    torch.testing.assert_close(normalizer.mean.float(), rollout.obs.flatten(0, 1).mean(0))
    assert abs(learned.approx_kl) < 1e-6, "one batch, one epoch: its ratios are all 1"


@pytest.mark.parametrize("return_stats", ["current", "previous"])
def test_return_statistics_of_this_or_of_the_previous_rollout(return_stats):
    learner = build(PPOConfig(epochs=1, batch_size=STEPS * ROWS), returns=True, return_stats=return_stats)
    rollout, targets = collected(learner.policy)
    critic, seen = learner.policy.critic, []
    original = critic.loss

    def watch(*args):
        seen.append(float(critic.returns.count))
        return original(*args)

    critic.loss = watch
    learner.learn(rollout, targets, KNOBS)
    assert seen == [STEPS * ROWS if return_stats == "current" else 0]
    assert critic.returns.count == STEPS * ROWS


def test_advantages_can_be_normalized_minibatch_by_minibatch():
    # Then their scale and offset do not matter.
    ppo = PPOConfig(epochs=2, batch_size=16, advantage_norm="minibatch")
    knobs = Knobs(KNOBS, value_coef=0.0)
    plain, scaled = build(ppo), build(ppo)
    rollout, targets = collected(plain.policy)
    plain.learn(rollout, targets, knobs)
    scaled.learn(rollout, replace(targets, advantage=100 * targets.advantage + 7), knobs)
    torch.testing.assert_close(weights(scaled), weights(plain), rtol=1e-3, atol=1e-4)


def test_a_minibatch_of_one_is_no_trouble():
    ppo = PPOConfig(epochs=1, batch_size=9, advantage_norm="minibatch")  # 64 = 7 * 9 + 1
    learner = build(ppo)
    learned = learner.learn(*collected(learner.policy), KNOBS)
    assert learned.skipped_steps == 0
    assert weights(learner).isfinite().all()


def test_the_entropy_bonus_widens_the_policy():
    narrow, wide = build(), build()
    for learner, coefficient in ((narrow, 0.0), (wide, 1.0)):
        learner.learn(*collected(learner.policy), Knobs(KNOBS, entropy_coef=coefficient))
    assert wide.policy.head.log_std.mean() > narrow.policy.head.log_std.mean()


def test_learning_leaves_the_rollout_alone():
    learner = build(PPOConfig(epochs=2, batch_size=16, advantage_norm="minibatch"), obs=True, returns=True)
    rollout, targets = collected(learner.policy)
    before = copy.deepcopy((rollout, targets))
    learner.learn(rollout, targets, KNOBS)
    for was, now in zip(before, (rollout, targets), strict=True):
        for name, value in vars(was).items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(value, getattr(now, name)), name
