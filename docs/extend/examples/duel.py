"""Duel-v0, a game of two agents: the readable twin of duel.cpp, a PettingZoo parallel env.

Each may rest, charge or strike, which hurts the other the more it was charged. Everything is
tiring, and an agent without health is out, while the other plays on alone.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

AGENTS = ("left", "right")
MAX_CYCLES = 24
REST, CHARGE, STRIKE = range(3)
LEAST_HEALTH, MOST_HEALTH, MOST_CHARGE, TIREDNESS = 3.0, 8.0, 3.0, 0.25

Obs = NDArray[np.float32]


class Duel:
    """A PettingZoo parallel env, without the need for PettingZoo."""

    metadata = {"name": "duel", "render_modes": ["rgb_array"], "render_fps": 4}
    possible_agents = list(AGENTS)
    metrics = {"hits": "sum", "won": "last"}

    def __init__(self, max_cycles: int = MAX_CYCLES, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.agents: list[str] = []
        most = np.array([MOST_HEALTH, MOST_HEALTH, MOST_CHARGE], np.float32)
        # One object per agent, at every call the same: PettingZoo seeds spaces.
        self._seen = {agent: spaces.Box(np.zeros(3, np.float32), most) for agent in AGENTS}
        self._choices = {agent: spaces.Discrete(3) for agent in AGENTS}
        self.parameters: dict[str, Any] = {"damage": 1.0, "handicap": np.zeros(2)}
        self._max_cycles, self._values, self._steps = max_cycles, dict(self.parameters), 0
        self._health, self._charge = [0.0, 0.0], [0.0, 0.0]
        self._random = np.random.Generator(np.random.PCG64())

    @property
    def unwrapped(self) -> "Duel":
        """The env itself."""
        return self

    def observation_space(self, agent: str) -> spaces.Box:
        """Own health, the other's, and how much one has charged."""
        return self._seen[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        """Rest, charge, strike."""
        return self._choices[agent]

    def set_parameters(self, values: dict[str, Any]) -> None:
        """`damage` of a charge, and `handicap`, how much health each agent lacks at the start."""
        if values.get("damage", 0.0) < 0:
            raise ValueError("damage must be at least 0")
        self._values |= values

    def reset(
        self, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Obs], dict[str, Any]]:
        """Start an episode; how healthy the agents are is part of their luck."""
        if seed is not None:
            self._random = np.random.Generator(np.random.PCG64(seed))
        drawn = [float(self._random.uniform(LEAST_HEALTH, MOST_HEALTH)) for _ in AGENTS]
        self._health = [
            health - float(less)
            for health, less in zip(drawn, self._values["handicap"], strict=True)
        ]
        self._charge, self._steps = [0.0, 0.0], 0
        # With a handicap of all its health, an agent leaves the other alone from the start.
        playing = {agent: place for place, agent in enumerate(AGENTS) if self._health[place] > 0}
        self.agents, observations = list(playing), self._observe()
        return {agent: observations[agent] for agent in playing}, {
            agent: {"action_mask": self._mask(place)} for agent, place in playing.items()
        }

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Both at once."""
        hits, lost, was_alive = [0.0, 0.0], [0.0, 0.0], [health > 0 for health in self._health]
        for agent, choice in actions.items():
            place = AGENTS.index(agent)
            strikes = choice == STRIKE and self._charge[place] > 0 and was_alive[1 - place]
            if choice == CHARGE:
                self._charge[place] = min(self._charge[place] + 1, MOST_CHARGE)
            if strikes:
                lost[1 - place] += self._values["damage"] * self._charge[place]
            if choice == STRIKE:
                self._charge[place] = 0.0
            hits[place] = float(strikes)
            lost[place] += 0.0 if choice == REST else TIREDNESS
        self._health = [
            health - TIREDNESS - less for health, less in zip(self._health, lost, strict=True)
        ]
        self._steps += 1
        acted, is_cut_off = (
            [AGENTS.index(agent) for agent in self.agents],
            self._steps >= self._max_cycles,
        )
        self.agents = [
            agent for agent, health in zip(AGENTS, self._health, strict=True) if health > 0
        ]
        if is_cut_off:
            self.agents = []
        observations = self._observe()
        return (
            {AGENTS[place]: observations[AGENTS[place]] for place in acted},
            {AGENTS[place]: hits[place] - 0.125 * lost[place] for place in acted},
            {AGENTS[place]: self._health[place] <= 0 for place in acted},
            {AGENTS[place]: is_cut_off for place in acted},
            {
                AGENTS[place]: {"action_mask": self._mask(place), **self._measure(place, hits)}
                for place in acted
            },
        )

    def render(self) -> NDArray[np.uint8]:
        """A bar of health for each, blue for the left one and red for the right one."""
        picture = np.full((120, 240, 3), 255, np.uint8)
        for place, color in enumerate([(40, 90, 180), (180, 60, 40)]):
            height = round(100 * max(self._health[place], 0.0) / MOST_HEALTH)
            picture[110 - height : 110, 40 + 100 * place : 100 + 100 * place] = color
        return picture

    def save_state(self) -> dict[str, Any]:
        """The state in full."""
        numbers = {
            "health": self._health,
            "charge": self._charge,
            "steps": self._steps,
            "agents": list(self.agents),
        }
        return numbers | {"random": self._random.bit_generator.state}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue from there."""
        self._health, self._charge = list(state["health"]), list(state["charge"])
        self._steps, self.agents = int(state["steps"]), list(state["agents"])
        self._random.bit_generator.state = state["random"]

    def close(self) -> None:
        """Nothing to release."""

    def _observe(self) -> dict[str, Obs]:
        shown = [max(health, 0.0) for health in self._health]
        return {
            agent: np.array([shown[place], shown[1 - place], self._charge[place]], np.float32)
            for place, agent in enumerate(AGENTS)
        }

    def _mask(self, place: int) -> NDArray[np.int8]:
        return np.array([1, 1, self._charge[place] > 0], np.int8)

    def _measure(self, place: int, hits: list[float]) -> dict[str, float]:
        return {
            "hits": hits[place],
            "won": float(self._health[place] > 0 and self._health[1 - place] <= 0),
        }


TWINS = {"Duel-v0": Duel}
