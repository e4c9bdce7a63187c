"""A cooperative task for a team whose members come and go."""

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

HORIZON = 12
SHIFTS = {"ann": range(HORIZON), "bob": range(HORIZON // 2), "cid": range(HORIZON // 3, HORIZON)}
"""The steps in which each takes part: bob leaves in the middle, cid comes late."""


class Rota(ParallelEnv):  # type: ignore[misc]
    """Each draws a ticket and sees everybody's, its own first; who has the lowest of those present must do job 0, and
    so on. Everyone present is paid the share of jobs done right: two thirds at most if nobody looks at the others.
    """

    metadata = {"name": "rota"}
    possible_agents = list(SHIFTS)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Box(-1, 1, (3,), np.float32)

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self._step = 0
        return self._draw(), {}

    def step(self, actions: dict[str, int]) -> Any:
        acting = list(self.agents)
        jobs = {agent: sum(self._tickets[other] < self._tickets[agent] for other in acting) for agent in acting}
        share = float(np.mean([actions[agent] == jobs[agent] for agent in acting]))
        self._step += 1
        terminations = {agent: agent == "bob" and self._step not in SHIFTS[agent] for agent in acting}
        truncations = dict.fromkeys(acting, self._step == HORIZON)
        last = {agent: np.zeros(3, np.float32) for agent in acting}
        return last | self._draw(), dict.fromkeys(acting, share), terminations, truncations, {}

    def _draw(self) -> dict[str, np.ndarray]:
        """New tickets, and who sees them."""
        self.agents = [agent for agent, shift in SHIFTS.items() if self._step in shift]
        self._tickets = dict(zip(self.agents, self._random.uniform(0, 1, len(self.agents)), strict=True))
        return {agent: self._view(agent) for agent in self.agents}

    def _view(self, agent: str) -> np.ndarray:
        others = [self._tickets.get(other, -1.0) for other in self.possible_agents if other != agent]
        return np.array([self._tickets[agent], *others], dtype=np.float32)
