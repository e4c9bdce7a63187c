"""Gymnasium vector envs of every autoreset mode, converted to same-step resets (S4, docs/semantics.md)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from surefoot.data.zeros_and_ones import zeros_and_ones
from surefoot.envs.protocol import SUCCESS_RATE, ArrayTree, Flags, Slot, flat_mask, new_slot
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.calls import close_env, env_error
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.shard import Shard, env_seeds
from surefoot.envs.protocol.spaces import EnvActions, ObsWriter
from surefoot.envs.protocol.vector_steps import (
    VectorStep,
    refuse_other_lengths,
    told,
    vector_reset,
    vector_step,
)
from surefoot.errors import EnvError
from surefoot.output.failures import brief

AnyVectorEnv = VectorEnv[Any, Any, Any]


class GymnasiumVectorEnv(Shard):
    """Adapts a `gymnasium.vector.VectorEnv`.

    SAME_STEP reads the final observations from the infos, DISABLED resets ended rows explicitly, and NEXT_STEP marks
    auto-reset steps as invalid: their actions are ignored, so they must be masked out everywhere.
    """

    def __init__(
        self,
        env: AnyVectorEnv,
        seed: int,
        truncation_as_termination: bool = False,
        metrics: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise EnvError(
                f"{type(env).__name__} does not declare its autoreset mode; set metadata['autoreset_mode'] to one of"
                f" {', '.join('AutoresetMode.' + known.name for known in AutoresetMode)}"
            )
        self._env: Any = env
        self._is_closed = False
        self._mode = mode
        self._truncation_as_termination = truncation_as_termination
        self._base_seed = seed
        self._seed = self._derive_seed(0)
        self._writer = ObsWriter(env.single_observation_space)
        self.num_rows = env.num_envs
        self.obs_spec, self.left_out = self._writer.spec, self._writer.left_out
        self._env_actions = EnvActions(env.single_action_space)
        self.action_spec = self._env_actions.spec
        self._declare(self._declarations(metrics or {}))
        _, infos = self._reset_envs(seed=self._seed)
        self.mask_size = self.action_spec.num_choices if "action_mask" in infos else 0
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs
        self._resetting: Flags = np.zeros(self.num_rows, dtype=bool)

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env from a seed derived from (seed, env, step); another step gives other episodes."""
        self._seed = self._derive_seed(step)
        obs, infos = self._reset_envs(seed=self._seed)
        self._resetting[:] = False
        self._write_obs(obs, slot.obs)
        self._write_masks(infos, slot, np.ones(self.num_rows, dtype=bool))

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step the vector env and fill the slot as with same-step resets."""
        obs, reward, terminated, truncated, infos = self._step_envs(actions)
        with np.errstate(over="ignore"):  # becomes infinite, which the collector refuses
            slot.reward[:] = reward
        slot.terminated[:], slot.truncated[:] = terminated, truncated
        slot.valid[:] = ~self._resetting
        if self._truncation_as_termination:
            slot.terminated[:] |= slot.truncated
            slot.truncated[:] = False
        ended = slot.ended
        if slot.metrics.shape[1]:
            self._write_metrics(infos, slot, ended)
        has_told_mask = np.ones(self.num_rows, dtype=bool)
        if self._mode is AutoresetMode.NEXT_STEP:
            # A row that ended shows its final observation now and resets in the next step.
            self._write_obs(obs, self.final_obs, ended)
            self._resetting = ended.copy()
        elif ended.any() and self._mode is AutoresetMode.SAME_STEP:
            self._keep_reported_final(infos, slot)
        elif ended.any():
            self._write_obs(obs, self.final_obs, ended)
            # This returns the observations of all rows, but only the infos of the rows that it resets.
            obs, reset_infos = self._reset_envs(options={"reset_mask": ended.copy()})
            self._write_masks(reset_infos, slot, ended)
            has_told_mask = ~ended
        self._write_obs(obs, slot.obs)
        self._write_masks(infos, slot, has_told_mask)

    def describe(self, row: int) -> str:
        """Env index and seed."""
        return f"env {row} (seed {self._seed[row] if isinstance(self._seed, list) else self._seed})"

    def _derive_seed(self, step: int) -> list[int] | int:
        seeds = env_seeds(self._base_seed, range(self._env.num_envs), step)
        return seeds if self._has_seed_each() else seeds[0]

    def _has_seed_each(self) -> bool:
        """Custom vector envs have one generator for all rows, so they take one seed."""
        return self._has_env_each()

    def _has_env_each(self) -> bool:
        return isinstance(self._env.unwrapped, SyncVectorEnv | AsyncVectorEnv)

    def close(self) -> None:
        """Close the vector env."""
        if not self._is_closed:
            self._is_closed = True
            close_env(self._env, "the vector env")

    def _reset_envs(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        try:
            result = self._env.reset(**how)
        except BaseException as error:
            raise env_error("the vector env", "reset", error) from error
        return vector_reset(result)

    def _step_envs(self, actions: NDArray[Any]) -> VectorStep:
        try:
            result = self._env.step(self._env_actions.batch(actions))
        except BaseException as error:
            raise env_error("the vector env", "step", error) from error
        return vector_step(result, self.num_rows)

    def _write_obs(self, obs: Any, target: ArrayTree, rows: Flags | slice = slice(None)) -> None:
        if not self._writer.write_batch(obs, target, rows):
            # Row by row: custom vector envs may return a list, and an error must name the row.
            refuse_other_lengths(obs, self.num_rows, "the observations")
            for row in map(int, np.arange(self.num_rows)[rows]):
                self._writer.write(self._row(obs, row), target, row, self.describe)

    def _write_masks(self, infos: dict[str, Any], slot: Slot, rows: Flags) -> None:
        if slot.action_mask is None:
            return
        slot.action_mask[self._resetting] = True  # their next action is ignored
        wanted = rows & ~self._resetting
        masks, given = told(infos, "action_mask", self.num_rows)
        missing = wanted & ~given
        if missing.any():
            raise EnvError(
                f"{self.describe(int(missing.argmax()))} returned no 'action_mask' in its infos; return one in every"
                " reset and step"
            )
        flags = zeros_and_ones(masks) if isinstance(masks, np.ndarray) else None
        if flags is not None and flags.shape == slot.action_mask.shape:
            slot.action_mask[wanted] = flags[wanted]
            return
        # Row by row: one mask per choice, or a row that an error must name.
        for row in map(int, np.flatnonzero(wanted)):
            slot.action_mask[row] = flat_mask(self._row(masks, row), self.action_spec, self.describe(row))

    def _declarations(self, chosen: Mapping[str, str]) -> Declared:
        """Metrics of the vector env or its first env, and parameters of the vector env, which sets them in all rows."""
        metrics = self._own_metrics()
        return Declared.by(
            lambda name: metrics if name == "metrics" else getattr(self._env.unwrapped, name, None),
            chosen,
            "the vector env",
        )

    def _apply_parameters(self, values: Values, before: Values) -> None:
        try:
            self._env.unwrapped.set_parameters({name: value.copy() for name, value in values.items()})
        except BaseException as error:
            raise env_error("the vector env", "set_parameters", error) from error

    def _own_metrics(self) -> Any:
        own = getattr(self._env, "metrics", None)
        if own is None and self._has_env_each() and self._env.unwrapped.call("has_wrapper_attr", "metrics")[0]:
            own = self._env.unwrapped.get_attr("metrics")[0]
        return own

    def _write_metrics(self, infos: dict[str, Any], slot: Slot, ended: Flags) -> None:
        final = infos.get("final_info", {}) if self._mode is AutoresetMode.SAME_STEP else infos
        if not isinstance(final, Mapping) and set(self.metrics) == {SUCCESS_RATE}:
            final = {}  # nobody asked for it
        if not isinstance(final, Mapping):
            raise EnvError(
                "infos['final_info'] of the vector env must be a dict of arrays, from which metrics are read"
            )
        slot.metrics[:] = np.nan
        self._reader.read_batch(infos, slot.metrics, slot.valid & ~ended, self.describe)
        # For a row that was reset in this step, the infos already describe the next episode.
        self._reader.read_batch(final, slot.metrics, slot.valid & ended, self.describe)

    def _keep_reported_final(self, infos: dict[str, Any], slot: Slot) -> None:
        reported, given = told(infos, "final_obs", self.num_rows)
        for row in map(int, np.flatnonzero(slot.ended)):
            final = self._row(reported, row) if given[row] else None
            if final is not None:
                self._writer.write(final, self.final_obs, row, self.describe)
            elif slot.truncated[row]:
                raise EnvError(
                    f"{self.describe(row)} was truncated without infos['final_obs'], so its return cannot be"
                    " bootstrapped; return infos['final_obs'], or set env.truncation_as_termination: true"
                )

    def _row(self, batch: Any, row: int) -> Any:
        """Row i of a batch, through dicts and tuples."""
        try:
            return _row(batch, row)
        except Exception as error:  # a sequence of another class
            raise EnvError(f"{self.describe(row)}: the vector env returned no row {row}: {brief(error)}") from error


def _row(batch: Any, row: int) -> Any:
    if isinstance(batch, dict):
        return {key: _row(inner, row) for key, inner in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_row(inner, row) for inner in batch)
    return batch[row]
