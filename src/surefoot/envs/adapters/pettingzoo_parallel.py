"""PettingZoo's parallel envs: a row is one agent of one env, and all agents share one policy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.adapters.pettingzoo_env import (
    Agent,
    Answer,
    CheckedEnv,
    ParallelEnv,
    common_agents,
    common_space,
    without_mask,
)
from surefoot.envs.protocol import OWN_STATE, Slot, flat_mask, new_slot
from surefoot.envs.protocol.calls import Calls, close_env
from surefoot.envs.protocol.shard import Shard, env_seeds
from surefoot.envs.protocol.spaces import EnvActions, ObsWriter
from surefoot.envs.protocol.steps import EnvStep, env_step
from surefoot.errors import EnvError


class PettingZooEnvs(Shard):
    """Envs `first_env`, `first_env + 1`, ... of a run, each with one row per possible agent, in order.

    Env i is seeded from (seed, i), regardless of other envs. A step of an agent is valid if the agent had an
    observation to act on and the env returned a result for it. An agent that is done, removed or not yet active has an
    invalid row of zeros with every action allowed. An env without active agents resets in the same step.
    """

    def __init__(
        self,
        factories: Sequence[Callable[[], ParallelEnv]],
        seed: int,
        truncation_as_termination: bool = False,
        first_env: int = 0,
        calls: Calls | None = None,
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(calls)
        self._seed, self._truncation_as_termination = seed, truncation_as_termination
        self._numbers = range(first_env, first_env + len(factories))
        self._seeds = env_seeds(seed, self._numbers, 0)
        self._envs: list[CheckedEnv] = []
        for number, make, env_seed in zip(self._numbers, factories, self._seeds, strict=True):
            self.calls.begin(len(self._envs))
            self._envs.append(CheckedEnv(number, make, env_seed))
        self._agents = common_agents(self._envs)
        self._place = {agent: place for place, agent in enumerate(self._agents)}
        self.num_rows = len(self._envs) * len(self._agents)
        self._acting = np.zeros(self.num_rows, dtype=bool)  # has an observation to act on
        self._read_spaces()
        self._read_declarations(self._numbers, metrics)
        self._now = self._new_slot(self.mask_size)
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env from a seed derived from (seed, env, step); another step gives other episodes."""
        self._seeds = env_seeds(self._seed, self._numbers, step)
        self._now = self._new_slot(0 if slot.action_mask is None else self.action_spec.num_choices)
        for index, seed in enumerate(self._seeds):
            self._begin(index, seed)
        self._show(slot)

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step every env with the actions of its active agents; an env without active agents is reset immediately."""
        now = self._now
        now.reward[:], now.terminated[:], now.truncated[:], now.valid[:] = 0, False, False, False
        if self._reader:
            now.metrics[:] = np.nan
        is_choice = self.action_spec.kind == "discrete"
        per_row = actions.tolist() if is_choice else self._env_actions.rows(actions)
        for index in range(len(self._envs)):
            if not self._step_env(index, per_row):
                self._begin(index, None)
        if self._truncation_as_termination:
            now.terminated[:] |= now.truncated
            now.truncated[:] = False
        slot.reward[:], slot.terminated[:], slot.truncated[:] = now.reward, now.terminated, now.truncated
        slot.valid[:] = now.valid
        if slot.metrics.shape[1]:
            slot.metrics[:] = now.metrics
        self._show(slot)

    def describe(self, row: int) -> str:
        """Env index, agent and seed."""
        index, place = divmod(row, len(self._agents))
        return f"env {self._numbers[index]}, agent '{self._agents[place]}' (seed {self._seeds[index]})"

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of all envs, or None if one of them cannot be saved."""
        if not all(env.can_save for env in self._envs):
            return None
        return self._with_parameters({"envs": [self._snapshot(index) for index in range(len(self._envs))]})

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from snapshots."""
        self._restore_from(state)
        self._seeds = env_seeds(self._seed, self._numbers, step)
        for index, snapshot in enumerate(state["envs"]):
            self._load_snapshot(index, snapshot)

    def close(self) -> None:
        """Close the envs."""
        envs, self._envs = self._envs, []
        for env in envs:
            close_env(env.env, env.describe())

    def _attribute(self, index: int, name: str) -> Any:
        return getattr(self._envs[index].env, name, None)

    def _new_slot(self, mask_size: int) -> Slot:
        return new_slot(self.num_rows, self.obs_spec, mask_size, len(self.metrics))

    def _read_spaces(self) -> None:
        first = self._envs[0]
        with first.call("observation_space"):
            obs_space = common_space(first.env.observation_space, self._agents, "observation")
        with first.call("action_space"):
            action_space = common_space(first.env.action_space, self._agents, "action")
        bare_space = without_mask(obs_space)
        self._has_mask_in_obs = bare_space is not None
        self._writer = ObsWriter(obs_space if bare_space is None else bare_space)
        self.obs_spec, self.left_out = self._writer.spec, self._writer.left_out
        self._env_actions = EnvActions(action_space)
        self.action_spec = self._env_actions.spec
        self.mask_size = self.action_spec.num_choices if self._has_mask_in_obs or self._has_mask_in_infos() else 0

    def _has_mask_in_infos(self) -> bool:
        """Only the first env of the run is checked, by a reset: the others have the same spaces."""
        infos = self._envs[0].reset(self._seeds[0])[1] if self._numbers.start == 0 else {}
        return any("action_mask" in info for info in infos.values())

    def _begin(self, index: int, seed: int | None) -> None:
        """Start an episode of one env, with its active agents."""
        env, rows = self._envs[index], self._rows(index)
        self.calls.begin(rows.start)
        observations, infos = env.reset(seed)
        self._clear(rows)
        for agent in env.agents():
            if agent in observations:
                self._see(rows.start + self._place[agent], observations[agent], infos.get(agent, {}))

    def _step_env(self, index: int, actions: Any) -> bool:
        """Step one env; returns whether it still has active agents."""
        env, first_row = self._envs[index], self._rows(index).start
        self.calls.begin(first_row)
        answer = env.step({agent: actions[first_row + self._place[agent]] for agent in env.agents()})
        listed = set(env.agents())
        left = [self._take(first_row + place, agent, answer, agent in listed) for agent, place in self._place.items()]
        return any(left)

    def _take(self, row: int, agent: Agent, answer: Answer, is_listed: bool) -> bool:
        """One agent's part of a step; returns whether the agent is still active."""
        if not is_listed and not self._acting[row]:
            return False
        step = env_step(answer.of(agent), row, self.describe)
        goes_on = is_listed and not (step.terminated or step.truncated)
        if self._acting[row]:
            self._record(row, step, goes_on, answer.mentions(agent), agent in answer.observations)
        if not goes_on:
            self._clear(slice(row, row + 1))
        elif agent in answer.observations:
            self._see(row, step.obs, step.info)
        return goes_on

    def _record(self, row: int, step: EnvStep, goes_on: bool, is_told: bool, is_seen: bool) -> None:
        """Reward and flags of an agent that acted, and its final observation if this was its last step."""
        now = self._now
        now.valid[row], now.reward[row], now.terminated[row] = is_told, step.reward, step.terminated
        # Removed without a flag counts as truncated: the env did not declare a terminal state.
        now.truncated[row] = step.truncated or not (goes_on or step.terminated)
        if self._reader and is_told:
            self._reader.read(step.info, now.metrics, row, self.describe)
        if goes_on:
            return
        if is_seen:
            self._writer.write(self._bare_and_mask(step.obs, step.info)[0], self.final_obs, row, self.describe)
        elif is_told and not step.terminated and not self._truncation_as_termination:
            raise EnvError(
                f"{self.describe(row)} was truncated without a final observation, so its return cannot be bootstrapped;"
                " return the observation, or set env.truncation_as_termination: true"
            )
        else:
            alone = slice(row, row + 1)
            tree_map(lambda final, last: np.copyto(final[alone], last[alone]), self.final_obs, now.obs)

    def _see(self, row: int, obs: Any, info: Mapping[str, Any]) -> None:
        """Write the observation and mask for an agent's next action."""
        bare, mask = self._bare_and_mask(obs, info)
        self._writer.write(bare, self._now.obs, row, self.describe)
        self._acting[row] = True
        if self._now.action_mask is not None:
            if mask is None:
                raise EnvError(
                    f"{self.describe(row)} returned no 'action_mask', but other agents did; return one in every step"
                )
            self._now.action_mask[row] = flat_mask(mask, self.action_spec, self.describe(row))

    def _bare_and_mask(self, obs: Any, info: Mapping[str, Any]) -> tuple[Any, Any]:
        """Observation and mask, from one dict or from observation and info."""
        if not self._has_mask_in_obs:
            return obs, info.get("action_mask")
        return (obs.get("observation"), obs.get("action_mask")) if isinstance(obs, Mapping) else (None, None)

    def _clear(self, rows: slice) -> None:
        """Fill the row of an inactive agent: zeros, and every action allowed."""
        self._acting[rows] = False
        for _, leaf in tree_items(self._now.obs):
            leaf[rows] = 0
        if self._now.action_mask is not None:
            self._now.action_mask[rows] = True

    def _show(self, slot: Slot) -> None:
        tree_map(np.copyto, slot.obs, self._now.obs)
        if slot.action_mask is not None and self._now.action_mask is not None:
            np.copyto(slot.action_mask, self._now.action_mask)

    def _snapshot(self, index: int) -> dict[str, Any]:
        rows, now = self._rows(index), self._now
        self.calls.begin(rows.start)
        with self._envs[index].call("save_state"):
            own = self._envs[index].env.save_state()
        return {
            OWN_STATE: own,
            "acting": self._acting[rows].copy(),
            "obs": tree_map(lambda leaf: leaf[rows].copy(), now.obs),
            "action_mask": None if now.action_mask is None else now.action_mask[rows].copy(),
        }

    def _load_snapshot(self, index: int, snapshot: dict[str, Any]) -> None:
        env, rows, now = self._envs[index], self._rows(index), self._now
        self.calls.begin(rows.start)
        env.reset(self._seeds[index])
        with env.call("load_state"):
            env.env.load_state(snapshot[OWN_STATE])
        self._acting[rows] = np.asarray(snapshot["acting"])
        tree_map(lambda leaf, saved: np.copyto(leaf[rows], np.asarray(saved)), now.obs, snapshot["obs"])
        if now.action_mask is not None:
            now.action_mask[rows] = np.asarray(snapshot["action_mask"])

    def _rows(self, index: int) -> slice:
        return slice(index * len(self._agents), (index + 1) * len(self._agents))
