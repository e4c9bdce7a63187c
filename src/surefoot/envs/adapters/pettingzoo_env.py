"""One PettingZoo parallel env, with checked results and errors that name the env."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from gymnasium import spaces

from surefoot.envs.protocol.calls import construct, env_call
from surefoot.envs.protocol.steps import plain_info
from surefoot.errors import EnvError

ParallelEnv = Any
"""A `pettingzoo.ParallelEnv`; not imported, so that only users of its envs need the package."""
Agent = Any


def is_parallel_env(env: object) -> bool:
    """Whether this is a PettingZoo parallel env, in which all agents act in every step."""
    return hasattr(env, "possible_agents") and hasattr(env, "step") and not hasattr(env, "agent_iter")


class Answer(NamedTuple):
    """The result of a step of a parallel env: dicts by agent."""

    observations: Mapping[Agent, Any]
    rewards: Mapping[Agent, Any]
    terminations: Mapping[Agent, Any]
    truncations: Mapping[Agent, Any]
    infos: Mapping[Agent, Any]

    def mentions(self, agent: Agent) -> bool:
        """Whether the result includes this agent; an info alone does not count as a step."""
        return any(agent in one for one in self[:4])

    def of(self, agent: Agent) -> tuple[Any, ...]:
        """The result of one agent, in the form of a single-agent env; a missing reward is 0, a missing flag False."""
        flags = self.terminations.get(agent, False), self.truncations.get(agent, False)
        return self.observations.get(agent), self.rewards.get(agent, 0.0), *flags, self.infos.get(agent, {})


class CheckedEnv:
    """Env number `index` of a run; `possible` are its possible agents."""

    def __init__(self, index: int, make: Callable[[], ParallelEnv], seed: int) -> None:
        self._index, self._seed = index, seed
        self.env = construct(make, index)
        self.possible: tuple[Agent, ...] = tuple(getattr(self.env, "possible_agents", ()))
        if not self.possible:
            raise EnvError(f"env {index} does not declare its possible agents; list all of them in env.possible_agents")

    def describe(self) -> str:
        """Env index and seed."""
        return f"env {self._index} (seed {self._seed})"

    def agents(self) -> list[Agent]:
        """The active agents."""
        with self.call("agents"):
            listed = list(self.env.agents)
            unknown = [agent for agent in listed if agent not in self.possible]
        if unknown:
            raise EnvError(
                f"{self.describe()} lists agent '{unknown[0]}', which is not in its possible_agents; add it there"
            )
        return listed

    def reset(self, seed: int | None) -> tuple[Mapping[Agent, Any], Mapping[Agent, Any]]:
        """Observations and infos of the agents at the start of an episode."""
        self._seed = self._seed if seed is None else seed
        with self.call("reset"):
            result = self.env.reset(seed=seed)
        if not _are_mappings(result, 2):
            raise EnvError(f"{self.describe()}: reset must return (observations, infos), dicts by agent")
        observations, infos = self._plain(result, "reset")
        if not self.agents():
            raise EnvError(f"{self.describe()} has no agents after reset; list the active agents in env.agents")
        return observations, infos

    def step(self, actions: dict[Agent, Any]) -> Answer:
        """One step of all agents."""
        with self.call("step"):
            result = self.env.step(actions)
        if not _are_mappings(result, 5):
            names = "observations, rewards, terminations, truncations, infos"
            raise EnvError(f"{self.describe()}: step must return ({names}), dicts by agent")
        return Answer(*self._plain(result, "step"))

    def call(self, name: str) -> AbstractContextManager[None]:
        """An error in a call of the env names the env and the call."""
        return env_call(self.describe, name)

    def _plain(self, result: Sequence[Any], call: str) -> list[dict[Agent, Any]]:
        """The dicts by agent, the last of which are infos: None stands for an empty one."""
        *dicts, infos = (plain_info(one, call, self.describe()) for one in result)
        named = {
            agent: plain_info({} if info is None else info, call, f"{self.describe()}, agent '{agent}'")
            for agent, info in infos.items()
        }
        return [*dicts, named]

    @property
    def can_save(self) -> bool:
        """Whether it has `save_state` and `load_state`, and no wrapper whose state would be lost."""
        return hasattr(self.env, "save_state") and self.env.unwrapped is self.env


def common_agents(envs: Sequence[CheckedEnv]) -> tuple[Agent, ...]:
    """The possible agents, which must be the same in every env: they are the rows."""
    agents = envs[0].possible
    for env in envs:
        if env.possible != agents:
            raise EnvError(
                f"{env.describe()} has the possible_agents {list(env.possible)}, but {envs[0].describe()} has"
                f" {list(agents)}; create all envs with the same agents in the same order"
            )
    return agents


def common_space(
    space_of: Callable[[Agent], spaces.Space[Any]], agents: Sequence[Agent], role: str
) -> spaces.Space[Any]:
    """The space that all agents share."""
    space = space_of(agents[0])
    others = [f"'{agent}' ({space_of(agent)})" for agent in agents if space_of(agent) != space]
    if others:
        raise EnvError(
            f"all agents share one policy, so their {role} spaces must be equal, but {', '.join(others)} differ from"
            f" '{agents[0]}' ({space}); pad them to one space in the env, or train these agents separately"
        )
    return space


def without_mask(space: spaces.Space[Any]) -> spaces.Space[Any] | None:
    """The space of the observation if the env returns {"observation", "action_mask"}, else None."""
    if isinstance(space, spaces.Dict) and set(space.spaces) == {"observation", "action_mask"}:
        return space["observation"]
    return None


def _are_mappings(result: Any, count: int) -> bool:
    return isinstance(result, tuple) and len(result) == count and all(isinstance(one, Mapping) for one in result)
