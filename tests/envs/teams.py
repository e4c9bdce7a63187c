"""A parallel env that plays a script, and whose every number says which env, agent, episode and step it is from."""

from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from tests.envs.tasks import ACTIONS

Script = dict[str, str]
"""One episode: for each agent a letter at its beginning and one more for each step, and nothing (a dot) from then on.

    a  takes part            T  terminated         t  terminated, not seen any more    g  gone without a word
    .  does not              L  truncated          l  truncated, not seen any more     x  gone without a flag
    s  takes part, but nothing is said of it       B  both                             X  the same, not seen any more
    r  takes part and is rewarded, but not seen    D  terminated, and stays on the list
"""
LISTED, SEEN, TOLD, TERMINATED, TRUNCATED = "asrD", "aTLBxD", "arTLBtlxXD", "TtBD", "LlB"

TEAM: list[Script] = [
    {"ann": "aaaaaaL", "bob": "aaT", "cid": ".aaaaB"},
    {"ann": "aaaL", "bob": "aaaT", "cid": "aL"},
]
"""Agents that die at different times, one that joins later, both kinds of endings and both at once."""


class TeamEnv(ParallelEnv):  # type: ignore[misc]
    """Observation: env, agent, episode, step, action that led there, own luck. Reward: the code of where it began."""

    metadata = {"name": "team"}

    def __init__(
        self,
        index: int = 0,
        script: list[Script] = TEAM,
        actions: str = "discrete",
        masks: str = "",
        garbage: float = 0,
    ) -> None:
        self._index, self._script, self._masks, self._garbage = index, script, masks, garbage
        self.possible_agents = list(script[0])
        self._action_space = ACTIONS[actions]
        self._episode = -1
        self.received: list[dict[str, Any]] = []

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        space = spaces.Box(-np.inf, np.inf, (6,), np.float32)
        mask = spaces.MultiBinary(4)
        return spaces.Dict({"observation": space, "action_mask": mask}) if self._masks == "obs" else space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._action_space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self._luck = [np.random.default_rng([seed, place]) for place in range(len(self.possible_agents))]
        self._episode = 0 if seed is not None else self._episode + 1
        self._step, self._given = 0, dict[str, Any]()
        self.agents = self._who(LISTED)
        return self._observations() | self._leftovers(), self._infos()

    def step(self, actions: dict[str, Any]) -> Any:
        if set(actions) != set(self.agents):
            raise ValueError(f"actions of {sorted(actions)}, but {sorted(self.agents)} take part")
        for agent, action in actions.items():
            if not self._action_space.contains(action):
                raise ValueError(f"{action!r} is not in {self._action_space}")
            if self._masks and agent in self._who(SEEN) and not self.mask(agent)[action]:
                raise ValueError(f"{agent}'s {action!r} is forbidden")
        self.received.append(actions)
        self._given = actions
        rewards = {agent: float(self.code(agent)) for agent in self.possible_agents}
        self._step += 1
        self.agents = self._who(LISTED)
        told = self._who(TOLD)
        terminations = {agent: agent in self._who(TERMINATED) for agent in told}
        truncations = {agent: agent in self._who(TRUNCATED) for agent in told}
        rewards = {agent: rewards[agent] for agent in told}
        leftovers = self._leftovers()
        rewards |= dict.fromkeys(leftovers, self._garbage)
        terminations, truncations = (flags | dict.fromkeys(leftovers, True) for flags in (terminations, truncations))
        return self._observations() | leftovers, rewards, terminations, truncations, self._infos()

    def code(self, agent: str) -> int:
        """Env 2, agent 1, episode 3, step 7 is 210307."""
        return 100_000 * self._index + 10_000 * self.possible_agents.index(agent) + 100 * self._episode + self._step

    def mask(self, agent: str) -> np.ndarray:
        """Forbids one choice, another one for every agent and step."""
        return np.arange(4) != (self.possible_agents.index(agent) + self._episode + self._step) % 4

    def save_state(self) -> dict[str, Any]:
        return {"at": [self._episode, self._step], "luck": [luck.bit_generator.state for luck in self._luck]}

    def load_state(self, state: dict[str, Any]) -> None:
        self._episode, self._step = state["at"]
        for luck, saved in zip(self._luck, state["luck"], strict=True):
            luck.bit_generator.state = saved
        self.agents = self._who(LISTED)

    def _who(self, letters: str) -> list[str]:
        parts = self._script[self._episode % len(self._script)].items()
        return [agent for agent, part in parts if (part[self._step] if self._step < len(part) else ".") in letters]

    def _observations(self) -> dict[str, Any]:
        shown = {agent: self._observe(agent) for agent in self._who(SEEN)}
        if self._masks != "obs":
            return shown
        return {agent: {"observation": obs, "action_mask": self.mask(agent)} for agent, obs in shown.items()}

    def _leftovers(self) -> dict[str, Any]:
        """What an untidy env still shows of agents that do not take part."""
        absent = self._who(".") if self._garbage else []
        return {agent: np.full(6, self._garbage, np.float32) for agent in absent}

    def _observe(self, agent: str) -> np.ndarray:
        place, action = self.possible_agents.index(agent), float(np.sum(self._given.get(agent, 0)))
        numbers = (self._index, place, self._episode, self._step, action, self._luck[place].random())
        return np.array(numbers, dtype=np.float32)

    def _infos(self) -> dict[str, Any]:
        return {agent: {"action_mask": self.mask(agent)} for agent in self._who(SEEN)} if self._masks == "info" else {}


def teams(count: int, script: list[Script] = TEAM, seed: int = 3, first_env: int = 0, **kwargs: Any) -> PettingZooEnvs:
    """Envs `first_env`, ... as rows."""
    makers = [partial(TeamEnv, index, script, **kwargs) for index in range(first_env, first_env + count)]
    return PettingZooEnvs(makers, seed, first_env=first_env)
