"""Alpha: the share of the worst episodes that CVaR is the mean of."""

from typing import Any

import numpy as np

from surefoot.errors import ConfigError
from surefoot.output.quoted import quoted

DEFAULT_ALPHA = 0.05


def check_alpha(alpha: Any, what: str = "alpha") -> float:
    """`alpha` as a float; an error unless 0 < alpha <= 1."""
    is_number = isinstance(alpha, int | float | np.integer | np.floating) and not isinstance(alpha, bool)
    if not is_number or not 0 < alpha <= 1:
        raise ConfigError(f"{what}: must be above 0 and at most 1, such as {DEFAULT_ALPHA} (got {quoted(alpha)})")
    return float(alpha)


def too_few(count: int, alpha: float) -> str | None:
    """A warning if the worst alpha share is less than one episode, else None."""
    needed = np.ceil((1 - 1e-12) / alpha)  # 1 / (1 / 49) is a little more than 49
    if count >= needed:
        return None
    return (
        f"the CVaR of the worst {percent(alpha)} of {count} episodes is the worst episode;"
        f" evaluate at least {needed:.0f} episodes"
    )


def identical(count: int) -> str:
    """The note beside figures of episodes that are all the same."""
    return (
        f"all {count} episodes are identical, step by step: the env ignores its seed, or is deterministic for this"
        " policy; intervals and standard deviations mean nothing"
    )


def percent(share: float) -> str:
    """`5%`, `2.5%`."""
    return f"{100 * share:.4g}%"
