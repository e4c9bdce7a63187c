"""Vector environments that misbehave by a grammar: whole batches of rewards, flags, observations and infos."""

import random
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from surefoot.api import PPO
from surefoot.errors import SurefootError
from tests.fuzz.attacks.envs import ERRORS, INFOS, SMALL
from tests.fuzz.values import ANY, odd_array

ROWS = 3
FLAG_ARRAYS = (
    np.full(ROWS, 0.5),
    np.full(ROWS, 2),
    np.full(ROWS, "False"),
    np.zeros(ROWS),
    np.zeros((ROWS, 1), bool),
    [False] * ROWS,
)


class OddVectorEnv(VectorEnv[Any, Any, Any]):
    """Behaves well but for one call."""

    def __init__(self, pick: random.Random) -> None:
        self.num_envs = ROWS
        self.single_observation_space = pick.choice(
            [
                spaces.Box(-1.0, 1.0, (2,)),
                spaces.Discrete(4),
                spaces.Dict({"a": spaces.Box(-1.0, 1.0, (2,)), "b": spaces.Discrete(3)}),
            ]
        )
        self.single_action_space = pick.choice([spaces.Discrete(2), spaces.Box(-1.0, 1.0, (1,))])
        self.observation_space = batch_space(self.single_observation_space, ROWS)
        self.action_space = batch_space(self.single_action_space, ROWS)
        self.metadata = {"autoreset_mode": pick.choice(list(AutoresetMode))}
        self.observation_space.seed(pick.randrange(99))
        self._pick, self._calls, self._when = pick, 0, pick.choice([0, 1, 3, 12, 10**9])

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        proper = [self.observation_space.sample(), {}]
        if self._is_due() and self._pick.random() < 0.3:
            place = self._pick.randrange(2)
            proper[place] = self._odd_obs() if place == 0 else self._pick.choice(INFOS)
        return tuple(proper)

    def step(self, actions: Any) -> Any:
        pick, obs = self._pick, self.observation_space.sample()
        ended = np.array([pick.random() < 0.2 for _ in range(ROWS)])
        infos: dict[str, Any] = {}
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP and ended.any():
            finals = np.array([None] * ROWS, dtype=object)
            for row in np.flatnonzero(ended):
                finals[row] = self.single_observation_space.sample()
            infos = {"final_obs": finals, "_final_obs": ended.copy()}
        proper: list[Any] = [obs, np.ones(ROWS), np.zeros(ROWS, bool), ended, infos]
        return self._mistaken(proper) if self._is_due() else tuple(proper)

    def _is_due(self) -> bool:
        self._calls += 1
        return self._calls > self._when

    def _mistaken(self, proper: list[Any]) -> Any:
        pick = self._pick
        match pick.randrange(7):
            case 0:
                proper[0] = self._odd_obs()
            case 1:
                proper[1] = odd_array(pick, (ROWS,))
            case 2 | 3 as place:
                proper[place] = pick.choice([*FLAG_ARRAYS, odd_array(pick, (ROWS,))])
            case 4:
                finals = [{"final_obs": odd_array(pick, (ROWS,))}, {"action_mask": odd_array(pick, (ROWS, 2))}]
                proper[4] = pick.choice([*INFOS, *finals])
            case 5:
                raise pick.choice(ERRORS)()
            case _:
                return pick.choice([None, tuple(proper[:4]), (*proper, 1), proper, pick.choice(ANY)])
        return tuple(proper)

    def _odd_obs(self) -> Any:
        if isinstance(self.single_observation_space, spaces.Dict):
            sample = self.observation_space.sample()
            return self._pick.choice([{**sample, "a": odd_array(self._pick, (ROWS, 2))}, {}, {"a": sample["a"]}])
        return odd_array(self._pick, (ROWS, *self.single_observation_space.shape))


def prepare(folder: Path) -> None:
    """Nothing: every case makes its own."""


def case(pick: random.Random, material: None, folder: Path) -> None:
    """Four iterations."""
    settings = {**SMALL, "batch_size": 12}
    settings.pop("num_envs")
    agent = None
    try:
        agent = PPO(OddVectorEnv(pick), **settings)
        agent.learn(4 * 8 * ROWS)
    except SurefootError:
        pass
    if agent is not None:
        assert all(bool(weight.isfinite().all()) for weight in agent.policy.parameters()), "weights are poisoned"
