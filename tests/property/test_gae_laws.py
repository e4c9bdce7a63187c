from dataclasses import dataclass, fields, replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from surefoot.data.moments import normalized
from surefoot.learning.estimators.gae import gae


@dataclass(frozen=True)
class Problem:
    """All that `gae` takes, in float64."""

    rewards: Tensor
    values: Tensor
    last_values: Tensor
    terminated: Tensor
    truncated: Tensor
    final_values: Tensor
    gamma: float
    gae_lambda: float
    valid: Tensor | None = None

    def solve(self) -> tuple[Tensor, Tensor]:
        return gae(**{item.name: getattr(self, item.name) for item in fields(self)})

    def row(self, index: int) -> "Problem":
        def one(value):
            return value[..., index : index + 1] if isinstance(value, Tensor) else value

        return Problem(**{item.name: one(getattr(self, item.name)) for item in fields(self)})


@st.composite
def problems(draw, gae_lambda=None, flags=True) -> Problem:
    steps, rows = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def numbers(*shape):
        return 3 * torch.randn(shape, generator=generator, dtype=torch.float64)

    def some(share):
        return torch.rand(steps, rows, generator=generator) < (share if flags else 0)

    share = draw(st.sampled_from([0.0, 0.1, 0.4, 1.0]))
    return Problem(
        rewards=numbers(steps, rows),
        values=numbers(steps, rows),
        last_values=numbers(rows),
        terminated=some(share),
        truncated=some(share),
        final_values=numbers(steps, rows),
        gamma=draw(st.sampled_from([0.0, 0.5, 0.97, 1.0])),
        gae_lambda=draw(st.sampled_from([0.0, 0.3, 0.95, 1.0])) if gae_lambda is None else gae_lambda,
    )


def next_value(problem: Problem, t: int, row: int) -> float:
    """What follows step t, in the words of S2."""
    if problem.terminated[t, row]:
        return 0.0
    if problem.truncated[t, row]:
        return float(problem.final_values[t, row])
    return float(problem.values[t + 1, row]) if t + 1 < len(problem.values) else float(problem.last_values[row])


def has_ended(problem: Problem, t: int, row: int) -> bool:
    return bool(problem.terminated[t, row] or problem.truncated[t, row])


def assert_same(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-10)


@given(problems(gae_lambda=1.0))
def test_lambda_one_gives_bootstrapped_monte_carlo_returns(problem):
    _, returns = problem.solve()
    for row in range(returns.shape[1]):
        for start in range(len(returns)):
            total, weight = 0.0, 1.0
            for t in range(start, len(returns)):
                total += weight * float(problem.rewards[t, row])
                weight *= problem.gamma
                if has_ended(problem, t, row) or t + 1 == len(returns):
                    total += weight * next_value(problem, t, row)
                    break
            assert_same(returns[start, row], torch.tensor(total, dtype=torch.float64))


@given(problems(gae_lambda=0.0))
def test_lambda_zero_gives_one_step_errors(problem):
    advantages, returns = problem.solve()
    for row in range(returns.shape[1]):
        for t in range(len(returns)):
            target = float(problem.rewards[t, row]) + problem.gamma * next_value(problem, t, row)
            assert_same(returns[t, row], torch.tensor(target, dtype=torch.float64))
    assert_same(advantages, returns - problem.values)


@given(problems())
def test_truncating_is_terminating_with_the_final_value_in_the_reward(problem):
    only_truncated = problem.truncated & ~problem.terminated
    bonus = torch.where(only_truncated, problem.gamma * problem.final_values, 0)
    terminating = replace(
        problem,
        rewards=problem.rewards + bonus,
        terminated=problem.terminated | problem.truncated,
        truncated=torch.zeros_like(problem.truncated),
    )
    assert_same(problem.solve(), terminating.solve())


@given(problems())
def test_final_values_count_only_where_a_step_was_truncated_and_not_terminated(problem):
    only_truncated = problem.truncated & ~problem.terminated
    elsewhere = torch.where(only_truncated, problem.final_values, 1e6)
    assert_same(problem.solve(), replace(problem, final_values=elsewhere).solve())


@given(problems())
def test_rows_do_not_know_of_each_other(problem):
    advantages, returns = problem.solve()
    for row in range(advantages.shape[1]):
        alone = problem.row(row).solve()
        assert torch.equal(advantages[:, row : row + 1], alone[0])
        assert torch.equal(returns[:, row : row + 1], alone[1])


@given(problems(), st.integers(0, 2**31))
def test_steps_that_did_not_happen_leave_no_trace(problem, seed):
    # As resets and dead agents come: the step after an ending is the one that does not count.
    ended = problem.terminated | problem.truncated
    valid = torch.ones_like(ended)
    valid[1:] = ~ended[:-1]
    ended = ended & valid
    valid[1:] = ~ended[:-1]
    problem = replace(problem, terminated=problem.terminated & valid, truncated=problem.truncated & valid, valid=valid)
    generator = torch.Generator().manual_seed(seed)

    def scrambled(values):
        noise = 1e3 * torch.randn(values.shape, generator=generator, dtype=torch.float64)
        return torch.where(valid, values, noise)

    changed = replace(
        problem,
        rewards=scrambled(problem.rewards),
        values=scrambled(problem.values),
        final_values=scrambled(problem.final_values),
    )
    before, after = problem.solve(), changed.solve()
    for was, now in zip(before, after, strict=True):
        assert torch.equal(was[valid], now[valid])
    assert (after[0][~valid] == 0).all()
    # And the valid steps are what they would be had the others never been there.
    for row in range(valid.shape[1]):
        kept = valid[:, row]
        if not kept.any():
            continue

        def dense(values, row=row, kept=kept):
            return values[kept, row].unsqueeze(1)

        shorter = Problem(
            rewards=dense(problem.rewards),
            values=dense(problem.values),
            last_values=problem.last_values[row : row + 1],
            terminated=dense(problem.terminated),
            truncated=dense(problem.truncated),
            final_values=dense(problem.final_values),
            gamma=problem.gamma,
            gae_lambda=problem.gae_lambda,
        )
        assert_same(before[0][kept, row], shorter.solve()[0].squeeze(1))


@given(problems(), st.floats(-100, 100), st.floats(0.1, 10))
def test_normalized_advantages_ignore_units_and_invalid_steps(problem, shift, scale):
    advantages, _ = problem.solve()
    valid = torch.rand(advantages.shape, generator=torch.Generator().manual_seed(0)) < 0.7
    if valid.sum() < 2 or advantages[valid].std() < 1e-3:
        return
    normal = normalized(advantages, valid)[valid]
    assert abs(float(normal.mean())) < 1e-9
    assert abs(float(normal.std()) - 1) < 1e-4
    other = torch.where(valid, scale * advantages + shift, 1e9)
    torch.testing.assert_close(normalized(other, valid)[valid], normal, rtol=0, atol=1e-3)
