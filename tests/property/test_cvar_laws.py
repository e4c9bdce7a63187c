import torch
from hypothesis import given
from hypothesis import strategies as st

from surefoot.policies.critics.quantile import quantile_cvar

NUMBERS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60)


@given(NUMBERS, st.floats(0.001, 1), st.floats(0.001, 1))
def test_cvar_grows_with_alpha_up_to_the_mean(values: list[float], one: float, other: float):
    quantiles = torch.tensor(values, dtype=torch.float64)
    low, high = (quantile_cvar(quantiles, alpha) for alpha in sorted((one, other)))
    assert low <= high + 1e-6
    assert high <= quantiles.mean() + 1e-6
    assert low >= quantiles.min() - 1e-6
    torch.testing.assert_close(quantile_cvar(quantiles, 1.0), quantiles.mean())


@given(NUMBERS, st.floats(0.001, 1), st.floats(-100, 100), st.floats(0, 10))
def test_cvar_moves_and_scales_with_the_returns(values: list[float], alpha: float, shift: float, scale: float):
    quantiles = torch.tensor(values, dtype=torch.float64)
    moved = quantile_cvar(scale * quantiles + shift, alpha)
    torch.testing.assert_close(moved, scale * quantile_cvar(quantiles, alpha) + shift, rtol=1e-9, atol=1e-6)
