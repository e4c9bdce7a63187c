"""Random log returns of one asset: normal, Student t or with jumps, in one regime or in two.

A return is `drift + volatility * noise`, and the noise has mean 0 and variance 1: normal, or Student t with `degrees`
of freedom, scaled by `sqrt((degrees - 2) / degrees)`. The process `jump` has normal noise and, with
`jump_probability`, adds a jump with mean `jump_mean` and standard deviation `jump_std`: a mixture of two normals.

With `stress_begins` above 0, a Markov chain switches between a calm and a stressed regime, before every return. The
stressed one has its own drift and volatility, and nothing in an observation names the regime. The chain begins in its
stationary distribution. This is the reference for cpp/envs/return_process.hpp.
"""

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.envs.tasks.option_checks import number, one_of, share

PROCESSES = ("normal", "student_t", "jump")
MOST = 1e3
"""The largest drift and volatility: nothing computed from them overflows."""
LEAST_DEGREES = 2.1
"""The variance of Student's t is infinite at 2 degrees of freedom."""

_DEFAULTS = {"drift": 0.0005, "volatility": 0.01}
_BY_PROCESS: dict[str, dict[str, float]] = {
    "normal": {},
    "student_t": {"degrees": 5.0},
    "jump": {"jump_probability": 0.02, "jump_mean": -0.06, "jump_std": 0.03},
}
_BY_REGIMES = {"stress_ends": 0.1, "stress_drift": -0.002, "stress_volatility": 0.03}
_RANGES = {
    "drift": (-MOST, MOST),
    "volatility": (0.0, MOST),
    "degrees": (LEAST_DEGREES, MOST),
    "jump_mean": (-MOST, MOST),
    "jump_std": (0.0, MOST),
    "stress_drift": (-MOST, MOST),
    "stress_volatility": (0.0, MOST),
}
"""All others are probabilities."""


class ReturnProcess:
    """Draws the returns of an episode; an option that has no effect is refused."""

    def __init__(self, process: str = "normal", stress_begins: float = 0.0, **options: Any) -> None:
        self.kind = one_of("process", process, PROCESSES)
        begins = share("stress_begins", stress_begins)
        known = _DEFAULTS | _BY_PROCESS[process] | (_BY_REGIMES if begins > 0.0 else {})
        _refuse_unused(options, known, process)
        self._numbers = {"stress_begins": begins}
        for name, value in (known | options).items():
            self._numbers[name] = number(name, value, *_RANGES.get(name, (0.0, 1.0)))

    def draw(self, random: np.random.Generator, count: int) -> list[float]:
        """So many returns, one after the other."""
        of = self._numbers
        calm, has_regimes = (of["drift"], of["volatility"]), of["stress_begins"] > 0.0
        is_stress = has_regimes and random.random() < of["stress_begins"] / (of["stress_begins"] + of["stress_ends"])
        returns = []
        for _ in range(count):
            if has_regimes and random.random() < of["stress_ends" if is_stress else "stress_begins"]:
                is_stress = not is_stress
            mean, std = (of["stress_drift"], of["stress_volatility"]) if is_stress else calm
            drawn = mean + std * self._noise(random)
            if self.kind == "jump" and random.random() < of["jump_probability"]:
                drawn += of["jump_mean"] + of["jump_std"] * random.standard_normal()
            returns.append(drawn)
        return returns

    def _noise(self, random: np.random.Generator) -> float:
        """A number with mean 0 and variance 1."""
        if self.kind != "student_t":
            return random.standard_normal()
        degrees = self._numbers["degrees"]
        return random.standard_t(degrees) * math.sqrt((degrees - 2.0) / degrees)


def _refuse_unused(options: Mapping[str, Any], known: Mapping[str, Any], process: str) -> None:
    for name in options:
        if name in known:
            continue
        if name in _BY_REGIMES:
            raise gym.error.Error(f"{name} has no effect without regimes; set stress_begins above 0 or remove {name}")
        owners = [kind for kind, its in _BY_PROCESS.items() if name in its]
        if owners:
            raise gym.error.Error(
                f"{name} has no effect with process '{process}'; set process to {owners[0]} or remove {name}"
            )
        raise gym.error.Error(f"Market-v0 has no option '{name}'; docs/market.md lists them")
