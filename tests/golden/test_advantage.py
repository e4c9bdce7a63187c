import pytest
import torch

from surefoot.data.moments import masked_mean, masked_std, normalized
from surefoot.learning.estimators.gae import gae
from surefoot.learning.reward_scaler import RewardScaler

from .cases import CASES, Case, column, float64, golden
from .rollouts import one_row


def solve(given, values_key="values", **changes):
    """`gae` on one row of a case; flags and final values default to none."""
    given = {**given, **changes}
    num_steps = len(given["rewards"])
    final_values = torch.zeros(num_steps, 1, dtype=torch.float64)
    for key, value in given.items():
        if key.startswith("value_of_final_obs_t"):
            final_values[int(key.rpartition("t")[2])] = value
    advantages, returns = gae(
        column(given["rewards"]),
        column(given[values_key]),
        float64([given["last_value"]]),
        column(given.get("terminated", [0] * num_steps)).bool(),
        column(given.get("truncated", [0] * num_steps)).bool(),
        final_values,
        given["gamma"],
        given["lam"],
        column(given["valid"]).bool() if "valid" in given else None,
    )
    return advantages.squeeze(1), returns.squeeze(1)


@golden(
    "gae_plain",
    "gae_terminated_t1",
    "gae_truncated_t1",
    "gae_both_flags",
    "gae_truncated_last_step",
    "gae_lambda0",
    "gae_lambda1",
)
def test_gae(case: Case):
    advantages, returns = solve(case.given)
    case.agrees(advantages, "advantages")
    if "returns" in case.expect:
        case.agrees(returns, "returns")
    for bug in case.known_wrong:
        case.differs(advantages, bug)


@golden("gae_truncated_t1")
def test_truncation_is_termination_with_the_bootstrap_in_the_reward(case: Case):
    rewards = list(case.given["rewards"])
    rewards[1] = case.expect["sb3_equivalent_reward_t1"]
    flags = case.given["truncated"]
    advantages, _ = solve(case.given, rewards=rewards, terminated=flags, truncated=[0, 0, 0, 0])
    case.agrees(advantages, "advantages")


def valid_steps(given):
    """NEXT_STEP: the step after an ending only resets, also when the ending was in the previous rollout."""
    num_steps = len(given["rewards"])
    none = [0] * num_steps
    ended = [a or b for a, b in zip(given.get("terminated", none), given.get("truncated", none), strict=True)]
    return [int(not before) for before in (given["prev_done_before_rollout"], *ended[:-1])]


@golden("autoreset_next_step", "autoreset_next_step_carry")
def test_autoreset(case: Case):
    valid = valid_steps(case.given)
    assert valid == case.expect["valid_mask"]
    advantages, _ = solve(case.given, "values_of_obs", valid=valid, value_of_final_obs_t1=10.0)
    case.agrees(advantages[column(valid).squeeze(1).bool()], "advantages_valid")
    assert all(advantage == 0 for advantage, is_valid in zip(advantages, valid, strict=True) if not is_valid)
    for bug in case.known_wrong:
        case.differs(advantages, bug)


@golden("autoreset_next_step")
def test_autoreset_equals_resetting_in_the_same_step(case: Case):
    valid = valid_steps(case.given)
    assert sum(valid) == case.expect["n_env_steps_counted"]
    advantages, _ = solve(case.given, "values_of_obs", valid=valid, value_of_final_obs_t1=10.0)
    same_step, _ = solve(CASES[case.expect["equals_same_step_case"]]["given"])
    torch.testing.assert_close(advantages[float64(valid).bool()], same_step, rtol=0, atol=case.atol)


def constant_value_fixed_point(case: Case, gae_lambda: float) -> float:
    """Regress one number for all states on the returns, again and again: reward 1 forever, cut by a time limit."""
    limit = case.given["time_limit"]
    rewards = torch.ones(limit, 1, dtype=torch.float64)
    truncated = torch.arange(limit).unsqueeze(1) == limit - 1
    value = 0.0
    for _ in range(2000):
        values = torch.full_like(rewards, value)
        nobody = torch.zeros_like(truncated)
        _, returns = gae(rewards, values, values[0], nobody, truncated, values, case.given["gamma"], gae_lambda)
        if abs(float(returns.mean()) - value) < 1e-13:
            break
        value = float(returns.mean())
    return value


@golden("infinite_horizon_value")
@pytest.mark.parametrize("gae_lambda", [1.0, 0.95])
def test_time_limits_do_not_lower_the_value_of_an_endless_task(case: Case, gae_lambda: float):
    value = constant_value_fixed_point(case, gae_lambda)
    case.agrees(value, "true_value")
    case.differs(value, "value_if_truncation_is_termination_from_start")


@golden("infinite_horizon_value")
def test_a_real_termination_does_lower_it(case: Case):
    rewards = torch.ones(case.given["time_limit"], 1, dtype=torch.float64)
    nothing = torch.zeros_like(rewards)
    terminated = nothing.bool()
    terminated[-1] = True
    _, returns = gae(rewards, nothing, nothing[0], terminated, nothing.bool(), nothing, case.given["gamma"], 1.0)
    wrong = case.known_wrong["value_if_truncation_is_termination_from_start"]
    assert float(returns[0]) == pytest.approx(wrong, abs=case.atol)


@golden("truncation_with_reward_norm")
def test_the_bootstrap_is_added_after_reward_scaling(case: Case):
    given = case.given
    scaler = RewardScaler(num_rows=1, gamma=given["gamma"], clip=1.0)
    # So many samples behind it that this one reward does not move the deviation.
    seen = {"count": float64(1e18), "mean": float64(0.0), "var": float64(given["reward_std"] ** 2)}
    scaler.load_state({"carried": torch.zeros(1), **seen})
    rollout = one_row(reward=[given["r"]], truncated=[True], final_value=[given["V_norm_final"]])
    zero = torch.zeros(1, 1, dtype=torch.float64)
    advantage, _ = gae(
        scaler.scale(rollout).double(),
        zero,
        zero[0],
        rollout.terminated,
        rollout.truncated,
        rollout.final_value.double(),
        given["gamma"],
        0.95,
    )
    effective_reward = advantage.item()  # V(s) is 0
    case.agrees(effective_reward, "effective_reward")
    case.differs(effective_reward, "normalised_after_adding_bootstrap")
    case.differs(effective_reward, "clipped_to_1_after_adding")


@golden("adv_norm_scope")
def test_advantages_are_normalized_over_everything(case: Case):
    advantage = float64(case.given["adv"])
    everything = torch.ones_like(advantage, dtype=torch.bool)
    case.agrees(normalized(advantage, everything), "global_unbiased")
    case.agrees(normalized(advantage), "global_unbiased")
    case.agrees(masked_std(advantage, everything), "std_unbiased")
    case.differs(normalized(advantage, everything), "per_micro_batch")
    assert abs(float(masked_std(advantage, everything)) - case.expect["std_biased"]) > 0.1


@golden("adv_norm_degenerate")
def test_degenerate_advantages(case: Case):
    constant, single = float64(case.given["adv_const"]), float64(case.given["adv_single"])
    case.agrees(normalized(constant, torch.ones_like(constant, dtype=torch.bool)), "const")
    assert normalized(single, torch.tensor([True])).tolist() == case.given["adv_single"]


@golden("adv_norm_degenerate")
@pytest.mark.parametrize("advantage", [0.1, -7.3, 100.1, 1e-3])
@pytest.mark.parametrize("count", [2, 7, 2048])
def test_constant_advantages_become_zero_in_float32_too(case: Case, advantage: float, count: int):
    # Rounding of the mean must not be blown up to unit size by an equally small deviation.
    constant = torch.full((count, 1), advantage)
    assert normalized(constant, torch.ones_like(constant, dtype=torch.bool)).abs().max() < 1e-3


@golden("masked_mean")
def test_masked_mean(case: Case):
    mean = masked_mean(float64(case.given["per_step_loss"]), float64(case.given["mask"]).bool())
    case.agrees(mean, "masked_mean")
    case.differs(mean, "plain_mean")
    case.differs(mean, "mean_of_seq_means")


@golden("masked_adv_norm")
def test_masked_advantage_normalization(case: Case):
    advantage, valid = float64(case.given["adv"]), float64(case.given["mask"]).bool()
    mean, std = masked_mean(advantage, valid), masked_std(advantage, valid)
    case.agrees(mean, "mean")
    case.agrees(std, "std_unbiased")
    case.differs(mean, "mean_with_pads")
    case.differs(std, "std_with_pads")
    case.agrees(((advantage - mean) / std)[valid], "normalised_valid")
    # This case has no epsilon, `normalized` has the 1e-8 of adv_norm_scope.
    expected = float64(case.expect["normalised_valid"])
    torch.testing.assert_close(normalized(advantage, valid)[valid], expected, rtol=1e-8, atol=0)
