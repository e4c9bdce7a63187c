"""Envs that report metrics and take parameters, whose numbers say where they come from."""

from typing import Any

import numpy as np

from tests.envs.tasks import CounterEnv, SavingEnv
from tests.envs.teams import TeamEnv

METRICS = {"score": "last", "pace": "mean", "effort": "sum"}


def numbers_of(step: int, is_end: bool, wind: float, slope: Any) -> dict[str, Any]:
    """Of step 1, 2, ... of an episode: `score` at its end alone, `pace` in every other step, `effort` in all."""
    numbers: dict[str, Any] = {"effort": step + wind + 10 * float(np.sum(slope))}
    if step % 2:
        numbers["pace"] = np.float64(step)
    return numbers | ({"score": bool(step % 3)} if is_end else {})


class MeasuredEnv(SavingEnv):
    """A counter whose reward and metrics feel the wind; it keeps what it was given in `given`."""

    metrics = METRICS
    parameters = {"wind": 0.5, "slope": [0.0, 1.0]}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._now: dict[str, Any] = {"wind": 0.5, "slope": np.array([0.0, 1.0])}
        self.given: list[dict[str, Any]] = []

    def set_parameters(self, values: dict[str, Any]) -> None:
        if values.get("wind") == 13:
            raise ValueError("no wind of 13")
        self.given.append(values)
        self._now |= values

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        info |= numbers_of(self.place.step, terminated or truncated, **self._now)
        return obs, reward + self._now["wind"], terminated, truncated, info


class ForgetfulEnv(CounterEnv):
    """Cannot save its state; its reward is its only parameter."""

    parameters = {"wind": 0.0}
    _wind = 0.0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._wind = values["wind"]

    def step(self, action: Any) -> Any:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, self._wind, terminated, truncated, info


class MeasuredTeam(TeamEnv):
    """Each agent's info has its reward so far as `pay`; `bonus` is paid in every step."""

    metrics = {"pay": "sum", "place": "last"}
    parameters = {"bonus": 0.0}
    _bonus = 0.0

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._bonus = values["bonus"]

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, terminations, truncations, infos = super().step(actions)
        infos = dict(infos)
        for agent, reward in rewards.items():
            number = {"pay": reward + self._bonus, "place": float(self.possible_agents.index(agent))}
            infos[agent] = infos.get(agent, {}) | number
        return observations, rewards, terminations, truncations, infos
