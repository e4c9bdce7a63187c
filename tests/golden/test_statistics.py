import math

import pytest
import torch

from surefoot.data.moments import Moments, explained_variance
from surefoot.data.specs import ArraySpec
from surefoot.learning.reward_scaler import RewardScaler, discounted_sums
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.preprocess import Preprocess
from surefoot.settings.config import NormalizeConfig

from .cases import Case, column, float64, golden, is_missing
from .rollouts import one_row


@golden("running_mean_std")
def test_moments_merge(case: Case):
    first, second = (Moments.of(float64(batch)) for batch in case.given["batches"])
    for merged in (first.merge(second), second.merge(first)):
        for part in ("mean", "var", "count"):
            actual = getattr(merged, part)
            case.agrees(actual, part)
            assert actual.item() != pytest.approx(case.known_wrong["sb3_initial_count_1e_4"][part], abs=1e-6)


@golden("running_mean_std")
def test_the_normalizer_merges_too(case: Case):
    normalizer = RunningNormalizer()
    for batch in case.given["batches"]:
        normalizer.absorb(torch.tensor(batch))
    for part in ("mean", "var", "count"):
        case.agrees(getattr(normalizer, part), part)


@golden("reward_scaling_accumulator")
def test_discounted_sums(case: Case):
    rewards = column(case.given["r"])
    ended = torch.arange(3).unsqueeze(1) == case.given["done_at"]
    sums = discounted_sums(rewards, ended, torch.zeros(1, dtype=torch.float64), case.given["gamma"]).squeeze(1)
    case.agrees(sums, "accumulator")
    for bug in case.known_wrong:
        case.differs(sums, bug)


@golden("reward_scaling_accumulator")
@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_both_endings_restart_the_sum_across_rollouts_too(case: Case, flag: str):
    ended = [t == case.given["done_at"] for t in range(3)]
    at_once = RewardScaler(1, case.given["gamma"], clip=10.0)
    at_once.scale(one_row(case.given["r"], **{flag: ended}))
    var = torch.tensor(case.expect["accumulator"]).var(unbiased=False).item()
    assert at_once.state()["var"].item() == pytest.approx(var, rel=1e-6)
    assert at_once.state()["carried"].tolist() == [case.expect["accumulator"][-1]]
    step_by_step = RewardScaler(1, case.given["gamma"], clip=10.0)
    for reward, end in zip(case.given["r"], ended, strict=True):
        step_by_step.scale(one_row([reward], **{flag: [end]}))
    assert step_by_step.state()["var"].item() == pytest.approx(var, rel=1e-6)


@golden("normaliser_eval")
def test_normalizer_is_frozen_until_told_and_survives_saving(case: Case):
    trained = RunningNormalizer(clip=NormalizeConfig().obs_clip).double()
    trained.absorb(float64([1, 2, 3, 4, 5, 6]))
    loaded = RunningNormalizer(clip=NormalizeConfig().obs_clip).double()
    loaded.load_state_dict(trained.state_dict())
    before = {name: value.clone() for name, value in loaded.state_dict().items()}
    for _ in range(1000):
        loaded(float64([5.0, -1e9]))
    assert case.expect["stats_unchanged_after_1000_eval_steps"]
    assert all(torch.equal(before[name], value) for name, value in loaded.state_dict().items())
    case.agrees(loaded(float64(5.0)), "norm_5")
    clip = case.expect["obs_clip"]
    assert loaded(float64([1e9, -1e9])).tolist() == [clip, -clip]


@golden("normaliser_eval")
def test_every_observation_takes_the_same_way_through_preprocess(case: Case):
    assert case.expect["terminal_obs_normalised_with_same_stats"]
    prepare = Preprocess(ArraySpec("box", (1,), "float32"), NormalizeConfig(obs=True))
    prepare.absorb(torch.arange(1.0, 7.0).unsqueeze(1))
    final_obs = torch.tensor([[5.0]])
    assert prepare(final_obs).item() == pytest.approx(case.expect["norm_5"], abs=1e-6)


@golden("normaliser_eval")
def test_scaling_leaves_the_rewards_of_the_rollout_raw(case: Case):
    assert case.expect["rewards_returned_raw"]
    rollout = one_row([3.0, -1.0, 2.0])
    scaled = RewardScaler(1, 0.9, clip=10.0).scale(rollout)
    assert rollout.reward.squeeze(1).tolist() == [3.0, -1.0, 2.0]
    assert not torch.equal(scaled, rollout.reward)


@golden("explained_variance")
def test_explained_variance(case: Case):
    target = float64(case.given["y_true"])
    case.agrees(explained_variance(float64(case.given["y_pred"]), target), "ev")


@golden("explained_variance")
@pytest.mark.parametrize("constant", [0.0, 0.1, -7.3, 100.1])
@pytest.mark.parametrize("count", [1, 7, 2048])
def test_constant_targets_have_no_explained_variance(case: Case, constant: float, count: int):
    assert case.expect["ev_constant_targets"].startswith("nan")
    assert is_missing(explained_variance(torch.linspace(0, 1, count), torch.full((count,), constant)))


@golden("reduction_order")
def test_moments_of_float32_do_not_depend_on_the_order_of_the_sum(case: Case):
    samples = torch.tensor(case.given["x"], dtype=torch.float32)
    assert math.fsum(case.given["x"]) == case.expect["fsum"]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]):
        total = Moments.of(samples[order]).mean * len(samples)
        case.agrees(total, "fsum")
        assert total not in (case.expect["sequential"], case.expect["pairwise"])
