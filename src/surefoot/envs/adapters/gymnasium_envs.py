"""Gymnasium envs in this process, stepped one after another."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any

import gymnasium as gym
from numpy.typing import NDArray

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_map
from surefoot.envs.adapters.snapshot import load_env, save_env
from surefoot.envs.protocol import Slot, flat_mask, new_slot
from surefoot.envs.protocol.calls import Calls, close_env, construct, env_call, env_error
from surefoot.envs.protocol.shard import Shard, env_seeds
from surefoot.envs.protocol.spaces import EnvActions, ObsWriter, action_spec
from surefoot.envs.protocol.steps import EnvStep, env_step, plain_info
from surefoot.errors import EnvError
from surefoot.output.quoted import quoted

GymEnv = gym.Env[Any, Any]


class GymnasiumEnvs(Shard):
    """Envs `first_env`, `first_env + 1`, ... of a run: env i is seeded from (seed, i), regardless of other envs."""

    def __init__(
        self,
        factories: Sequence[Callable[[], GymEnv]],
        seed: int,
        truncation_as_termination: bool = False,
        first_env: int = 0,
        calls: Calls | None = None,
        metrics: Mapping[str, str] | None = None,
        is_first: bool | None = None,
    ) -> None:
        super().__init__(calls)
        self._is_first = first_env == 0 if is_first is None else is_first
        self._numbers = range(first_env, first_env + len(factories))
        self._envs: list[GymEnv] = []
        for number, make in zip(self._numbers, factories, strict=True):
            self.calls.begin(len(self._envs))
            self._envs.append(_gymnasium_env(construct(make, number), number))
        self._seed, self._seeds = seed, env_seeds(seed, self._numbers, 0)
        self._truncation_as_termination = truncation_as_termination
        first = self._envs[0]
        self._writer = ObsWriter(first.observation_space)
        self.num_rows = len(self._envs)
        self._read_declarations(self._numbers, metrics)
        self.obs_spec, self.left_out = self._writer.spec, self._writer.left_out
        self._env_actions = EnvActions(first.action_space)
        self.action_spec = self._env_actions.spec
        self._own_masks = first.has_wrapper_attr("action_masks")
        self.mask_size = self.action_spec.num_choices if self._has_masks() else 0
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env from a seed derived from (seed, env, step); another step gives other episodes."""
        self._seeds = env_seeds(self._seed, self._numbers, step)
        for row, seed in enumerate(self._seeds):
            obs, info = self._reset_env(row, seed)
            self._write(row, obs, info, slot)

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step every env; an env that ended is reset immediately and its last observation is kept in `final_obs`."""
        per_env = self._env_actions.rows(actions)
        reader = self._reader if slot.metrics.shape[1] else None
        for row in range(self.num_rows):
            step = self._step_env(row, per_env[row])
            obs, info = step.obs, step.info
            if step.terminated or step.truncated:
                self._writer.write(obs, self.final_obs, row, self.describe)
                obs, info = self._reset_env(row, None)
            self._write(row, obs, info, slot)
            slot.reward[row] = step.reward
            slot.terminated[row] = step.terminated
            slot.truncated[row] = step.truncated
            if reader is not None:
                reader.read(step.info, slot.metrics, row, self.describe)
        slot.valid[:] = True
        if self._truncation_as_termination:
            slot.terminated[:] |= slot.truncated
            slot.truncated[:] = False

    def describe(self, row: int) -> str:
        """Env index and seed."""
        return f"env {self._numbers[row]} (seed {self._seeds[row]})"

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of all envs, or None if one of them cannot be saved."""
        snapshots = []
        for row, env in enumerate(self._envs):
            with self._call(row, "save_state"):
                snapshots.append(save_env(env))
        return self._with_parameters(None if None in snapshots else {"envs": snapshots})

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from snapshots."""
        self._restore_from(state)
        for row, (env, snapshot) in enumerate(zip(self._envs, state["envs"], strict=True)):
            with self._call(row, "load_state"):
                load_env(env, snapshot)

    def close(self) -> None:
        """Close the envs."""
        envs, self._envs = self._envs, []
        for row, env in enumerate(envs):
            close_env(env, self.describe(row))

    def _attribute(self, index: int, name: str) -> Any:
        env = self._envs[index]
        return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None

    def _spaces(self, index: int) -> tuple[ObsSpec, ArraySpec]:
        env = self._envs[index]
        # Bounds of observations may differ: nothing but a count of values outside of them depends on it.
        obs: ObsSpec = tree_map(lambda spec: replace(spec, low=-inf, high=inf), ObsWriter(env.observation_space).spec)
        return obs, action_spec(env.action_space)

    def _has_masks(self) -> bool:
        """Only the first env of the run is checked, by a reset: the others have the same spaces."""
        return self._own_masks or (self._is_first and "action_mask" in self._reset_env(0, self._seeds[0])[1])

    def _reset_env(self, row: int, seed: int | None) -> tuple[Any, dict[str, Any]]:
        with self._call(row, "reset"):
            result = self._envs[row].reset(seed=seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise EnvError(f"{self.describe(row)}: reset must return (obs, info)")
        return result[0], plain_info(result[1], "reset", self.describe(row))

    def _step_env(self, row: int, action: Any) -> EnvStep:
        self.calls.begin(row)
        try:  # in every step, where a context manager would cost more
            result = self._envs[row].step(action)
        except BaseException as error:
            raise env_error(self.describe(row), "step", error) from error
        return env_step(result, row, self.describe)

    def _call(self, row: int, name: str) -> AbstractContextManager[None]:
        """Mark a call of an env; an error names the env and the call."""
        self.calls.begin(row)
        return env_call(partial(self.describe, row), name)

    def _write(self, row: int, obs: Any, info: dict[str, Any], slot: Slot) -> None:
        self._writer.write(obs, slot.obs, row, self.describe)
        if slot.action_mask is not None:
            mask = info.get("action_mask")
            if self._own_masks:
                with self._call(row, "action_masks"):
                    mask = self._envs[row].get_wrapper_attr("action_masks")()
            if mask is None:
                raise EnvError(
                    f"{self.describe(row)} returned no 'action_mask' in its info; return one in every reset and step"
                )
            slot.action_mask[row] = flat_mask(mask, self.action_spec, self.describe(row))


def _gymnasium_env(env: Any, number: int) -> GymEnv:
    """The env, if it has what the adapter uses."""
    missing = [name for name in ("observation_space", "action_space", "get_wrapper_attr") if not hasattr(env, name)]
    if missing:
        raise EnvError(
            f"env {number} is {quoted(env)}, which has no {missing[0]}; create a gymnasium.Env with both spaces"
        )
    return env  # type: ignore[no-any-return]
