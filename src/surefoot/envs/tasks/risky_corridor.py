"""RiskyCorridor: a short way with a higher mean and a rare large loss, or a longer safe one.

The agent starts between the two ends of a corridor, `risky_length` cells from one and `safe_length` from the other, and
walks one cell per step. Each step costs `step_cost`. The risky end pays `risky_gain`, or with `loss_probability` takes
`loss` instead; the safe end always pays `safe_gain`. Both terminate the episode.

Who walks straight to an end has one of two returns. With p = `loss_probability` and n the number of steps,

    risky:  risky_gain - n * step_cost  with probability 1 - p,  -loss - n * step_cost  with probability p
    safe:   safe_gain - n * step_cost

and `ways` gives their mean and CVaR. By default the risky way has the better mean (2.28 against 1.6) and the safe way
the better CVaR (at 0.05: 1.6 against -7.6; at 0.1: 1.6 against -2.4). This is the reference for
cpp/envs/risky_corridor.cpp.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import number, share, whole_number

TOWARD_RISKY, TOWARD_SAFE = range(2)
MOST_LENGTH, MOST = 8, 1e6

Obs = NDArray[np.float32]


@dataclass(frozen=True)
class Way:
    """Returns of a way to an end: the usual one, and the worse one with its probability."""

    usual: float
    worse: float
    probability: float

    @property
    def mean(self) -> float:
        """The mean return."""
        return (1.0 - self.probability) * self.usual + self.probability * self.worse

    def cvar(self, alpha: float) -> float:
        """The mean of the worst share `alpha` of returns: the worse one first, then the usual one for the rest."""
        worse = min(self.probability, alpha)
        return (worse * self.worse + (alpha - worse) * self.usual) / alpha


class RiskyCorridor(gym.Env[Obs, Any]):
    """Observes its cell as a one-hot vector, from the risky end to the safe one."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}
    metrics = {"risky": "last"}

    def __init__(
        self,
        risky_length: int = 2,
        safe_length: int = 4,
        risky_gain: float = 3.0,
        safe_gain: float = 2.0,
        loss: float = 10.0,
        loss_probability: float = 0.04,
        step_cost: float = 0.1,
        render_mode: str | None = None,
    ) -> None:
        self._start = whole_number("risky_length", risky_length, 1, MOST_LENGTH)
        self._last = self._start + whole_number("safe_length", safe_length, 1, MOST_LENGTH)
        self._risky_gain = number("risky_gain", risky_gain, -MOST, MOST)
        self._safe_gain = number("safe_gain", safe_gain, -MOST, MOST)
        self._loss = number("loss", loss, 0.0, MOST)
        self._loss_probability = share("loss_probability", loss_probability)
        self._step_cost = number("step_cost", step_cost, 0.0, MOST)
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(0.0, 1.0, (self._last + 1,))
        self._cell, self._is_loss = self._start, False

    def ways(self) -> tuple[Way, Way]:
        """The risky and the safe way, walked straight."""
        risky_cost, safe_cost = self._start * self._step_cost, (self._last - self._start) * self._step_cost
        risky = Way(self._risky_gain - risky_cost, 0.0 - self._loss - risky_cost, self._loss_probability)
        return risky, Way(self._safe_gain - safe_cost, self._safe_gain - safe_cost, 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Return to the start; whether the risky end is a loss is decided now and not shown."""
        super().reset(seed=seed)
        self._is_loss = bool(self.np_random.random() < self._loss_probability)
        self._cell = self._start
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Walk one cell."""
        if 0 < self._cell < self._last:
            self._cell += -1 if action == TOWARD_RISKY else 1
        is_risky, is_safe = self._cell == 0, self._cell == self._last
        info = {"risky": is_risky} if is_risky or is_safe else {}
        return self._observe(), self._pay() - self._step_cost, is_risky or is_safe, False, info

    def render(self) -> Any:
        """The cells, with what the ends pay."""
        if self.render_mode is None:
            return None
        from surefoot.envs.tasks.drawing import draw_corridor

        risky = f"{self._risky_gain:+g} or {-self._loss:g} ({self._loss_probability:.0%})"
        return draw_corridor(self._last + 1, self._cell, self._start, risky, f"{self._safe_gain:+g}")

    def save_state(self) -> dict[str, Any]:
        """The complete state."""
        return {"cell": self._cell, "is_loss": self._is_loss}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        if not isinstance(state["is_loss"], bool):
            raise gym.error.Error(f"is_loss must be true or false, not {state['is_loss']!r}")
        self._cell = whole_number("cell", state["cell"], 0, self._last)
        self._is_loss = state["is_loss"]

    def _pay(self) -> float:
        """What the cell pays."""
        if self._cell == 0:
            return 0.0 - self._loss if self._is_loss else self._risky_gain
        return self._safe_gain if self._cell == self._last else 0.0

    def _observe(self) -> Obs:
        obs = np.zeros(self._last + 1, np.float32)
        obs[self._cell] = 1.0
        return obs
