"""Market: hold a position in one asset whose next return is unknown.

At time t the agent sees the returns up to `r[t]` and chooses the position `w` that it holds until t + 1. Then `r[t+1]`
becomes known, and the reward is

    w * r[t+1] - turnover_cost * |w - v| - impact_cost / 2 * (w - v)^2 - exposure_cost / 2 * w^2

where `v` is the position before. Returns are log returns, positions are multiples of the capital at the start of the
episode, and gains are not reinvested: equity is 1 plus the sum of rewards so far, without the penalty of a bankruptcy.
An episode begins without a position, and selling at its end costs nothing.

Equity below `bankrupt_below` terminates the episode and costs `bankrupt_penalty`. The end of the horizon truncates it.

Returns come from a random process (return_process.py) or from a CSV file of prices (recorded_prices.py). This is the
reference for cpp/envs/market.cpp.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.tasks.option_checks import number, one_of, whole_number
from surefoot.envs.tasks.recorded_prices import recorded_returns
from surefoot.envs.tasks.return_process import ReturnProcess

MOST_HORIZON, MOST_WINDOW = 4096, 256
MOST_POSITION, MOST_COST, LEAST_EQUITY, MOST_PENALTY = 1e3, 1e3, -1e6, 1e6
MOST_RETURN = 1e6
START_EQUITY = 1.0
STARTS = ("random", "first")

Obs = NDArray[np.float32]


class RecordedReturns:
    """Episodes are stretches of recorded returns, each from a random place or all from the first one."""

    def __init__(self, length: int, returns: Sequence[float], start: str = STARTS[0], **others: Any) -> None:
        if others:
            raise gym.error.Error(f"{next(iter(others))} has no effect on recorded returns; remove it")
        self.is_random = one_of("start", start, STARTS) == "random"
        self.returns, self._num_starts = tuple(returns), len(returns) - length + 1
        if self._num_starts < 1:
            raise gym.error.Error(
                f"there are {len(returns)} recorded returns, but window + horizon = {length} are needed (and one more"
                " price); lower horizon or window"
            )

    def draw(self, random: np.random.Generator, count: int) -> tuple[float, ...]:
        """The returns of an episode."""
        first = int(random.random() * self._num_starts) if self.is_random else 0
        return self.returns[first : first + count]


def with_returns(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in which a file of prices is replaced by its returns: as the core takes them."""
    if "prices" in options and "returns" in options:
        raise gym.error.Error("prices and returns cannot both be given; remove one of the two")
    options = dict(options)
    if "prices" in options:
        options["returns"] = recorded_returns(options.pop("prices"), options.pop("column", None))
    for name in ("column", "start"):
        if name in options and "returns" not in options:
            raise gym.error.Error(f"{name} has no effect without prices; set prices to a CSV file or remove {name}")
    return options


def source_of(length: int, options: Mapping[str, Any]) -> ReturnProcess | RecordedReturns:
    """Where the `length` returns of an episode come from."""
    options = with_returns(options)
    if "returns" not in options:
        return ReturnProcess(**options)
    if not isinstance(options["returns"], Sequence | np.ndarray):
        raise gym.error.Error(f"returns must be a list of numbers, not {options['returns']!r:.60}")
    returns = [number("returns", each, -MOST_RETURN, MOST_RETURN) for each in options.pop("returns")]
    return RecordedReturns(length, returns, **options)


class Market(gym.Env[Obs, NDArray[np.float32]]):
    """Observes the last `window` returns, the position, the gain so far and the remaining fraction of the horizon.

    The action is the position to hold, from `low` to `high`. `source` are options of the process, or `prices`, `column`
    and `start`; `returns`, a list of log returns, can stand for `prices`.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}
    metrics = {"win": "last", "turnover": "sum", "bankrupt": "last", "max_drawdown": "last", "position": "mean"}

    def __init__(
        self,
        horizon: int = 128,
        window: int = 8,
        low: float = -1.0,
        high: float = 1.0,
        turnover_cost: float = 0.0005,
        impact_cost: float = 0.0,
        exposure_cost: float = 0.0,
        bankrupt_below: float = 0.0,
        bankrupt_penalty: float = 0.0,
        render_mode: str | None = None,
        **source: Any,
    ) -> None:
        self._horizon = whole_number("horizon", horizon, 1, MOST_HORIZON)
        self._window = whole_number("window", window, 0, MOST_WINDOW)
        self._low = number("low", low, -MOST_POSITION, MOST_POSITION)
        self._high = number("high", high, -MOST_POSITION, MOST_POSITION)
        if self._low >= self._high:
            raise gym.error.Error(f"low must be less than high, not {low!r} and {high!r}")
        self._turnover_cost = number("turnover_cost", turnover_cost, 0.0, MOST_COST)
        self._impact_cost = number("impact_cost", impact_cost, 0.0, MOST_COST)
        self._exposure_cost = number("exposure_cost", exposure_cost, 0.0, MOST_COST)
        self._bankrupt_below = number("bankrupt_below", bankrupt_below, LEAST_EQUITY, START_EQUITY)
        self._bankrupt_penalty = number("bankrupt_penalty", bankrupt_penalty, 0.0, MOST_PENALTY)
        self._source = source_of(self._window + self._horizon, source)
        self.render_mode = render_mode
        self.action_space = spaces.Box(self._low, self._high, (1,))
        lows = [-np.inf] * self._window + [min(self._low, 0.0), -np.inf, 0.0]
        highs = [np.inf] * self._window + [max(self._high, 0.0), np.inf, 1.0]
        self.observation_space = spaces.Box(np.array(lows, np.float32), np.array(highs, np.float32))
        self._returns: tuple[float, ...] = (0.0,) * (self._window + self._horizon)
        self._time, self._position, self._gain, self._peak, self._drawdown = 0, 0.0, 0.0, 0.0, 0.0
        self._equity = [START_EQUITY]  # only for pictures

    @staticmethod
    def core_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the core takes instead of these arguments: a file is read and checked here."""
        return with_returns(arguments)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Draw the returns of the episode; those of the window are in the past."""
        super().reset(seed=seed)
        self._returns = tuple(self._source.draw(self.np_random, self._window + self._horizon))
        self._time, self._position, self._gain, self._peak, self._drawdown = 0, 0.0, 0.0, 0.0, 0.0
        self._equity = [START_EQUITY]
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """Trade, pay the costs, and earn the return of the new position."""
        target = min(max(float(action[0]), self._low), self._high)
        change = target - self._position
        cost = (
            self._turnover_cost * abs(change)
            + 0.5 * self._impact_cost * (change * change)
            + 0.5 * self._exposure_cost * (target * target)
        )
        reward = target * self._returns[self._window + self._time] - cost
        self._position = target
        self._gain += reward
        self._equity.append(START_EQUITY + self._gain)
        self._peak = max(self._peak, self._gain)
        self._drawdown = max(self._drawdown, self._peak - self._gain)
        self._time += 1
        is_bankrupt = START_EQUITY + self._gain < self._bankrupt_below
        penalty = self._bankrupt_penalty if is_bankrupt else 0.0
        info = {
            "win": self._gain - penalty > 0.0,
            "turnover": abs(change),
            "bankrupt": is_bankrupt,
            "max_drawdown": self._drawdown,
            "position": target,
        }
        is_over = not is_bankrupt and self._time == self._horizon
        return self._observe(), reward - penalty, is_bankrupt, is_over, info

    def render(self) -> Any:
        """Price and equity since the start of the episode, and the position relative to the larger limit."""
        if self.render_mode is None:
            return None
        from surefoot.envs.tasks.drawing import draw_market

        seen = self._returns[self._window : self._window + self._time]
        prices = np.cumsum([0.0, *seen]).tolist()
        share = self._position / max(abs(self._low), abs(self._high))
        return draw_market(prices, self._equity, share, self._horizon)

    def save_state(self) -> dict[str, Any]:
        """The complete state, including future returns."""
        names = ("time", "position", "gain", "peak", "drawdown", "returns")
        return {name: getattr(self, f"_{name}") for name in names}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from a saved state."""
        most = float(np.finfo(np.float64).max)
        returns = tuple(number("returns", each, -most, most) for each in state["returns"])
        if len(returns) != self._window + self._horizon:
            raise gym.error.Error(f"returns must have {self._window + self._horizon} numbers, not {len(returns)}")
        time = whole_number("time", state["time"], 0, self._horizon - 1)
        position = number("position", state["position"], min(self._low, 0.0), max(self._high, 0.0))
        gain = number("gain", state["gain"], -most, most)
        peak, drawdown = (number(name, state[name], 0.0, most) for name in ("peak", "drawdown"))
        self._returns, self._time, self._position = returns, time, position
        self._gain, self._peak, self._drawdown = gain, peak, drawdown

    def _observe(self) -> Obs:
        left = (self._horizon - self._time) / self._horizon
        recent = self._returns[self._time : self._time + self._window]
        return np.array([*recent, self._position, self._gain, left], np.float32)
