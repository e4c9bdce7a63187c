"""Gymnasium vector envs in each autoreset mode, brought to same-step resets with dense final observations (S4)."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from surefoot.core.errors import EnvError
from surefoot.core.philox import Stream, derived_seed
from surefoot.envs.protocol import Flags, Slot, choices, flat_mask, new_slot
from surefoot.envs.spaces import ObsWriter, array_spec

AnyVectorEnv = VectorEnv[Any, Any, Any]


class GymnasiumVectorEnv:
    """Adapts a `gymnasium.vector.VectorEnv`.

    SAME_STEP takes the final observations from the infos, DISABLED resets ended rows itself, and NEXT_STEP marks the
    step that only resets as invalid: its action is ignored, so it must not count anywhere.
    """

    def __init__(self, env: AnyVectorEnv, seed: int, truncation_as_termination: bool = False) -> None:
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise EnvError(
                f"{type(env).__name__} does not say how it resets; set metadata['autoreset_mode'] to one of"
                f" {', '.join('AutoresetMode.' + known.name for known in AutoresetMode)}"
            )
        self._env, self._mode = env, mode
        self._truncation_as_termination = truncation_as_termination
        # Typed as Any: Gymnasium takes one seed an env, though its annotation says one int.
        self._seeds: Any = [derived_seed(seed, row, Stream.ENV_SEED) for row in range(env.num_envs)]
        self._writer = ObsWriter(env.single_observation_space)
        self.num_rows = env.num_envs
        self.obs_spec = self._writer.spec
        self.action_spec = array_spec(env.single_action_space, "action")
        _, infos = env.reset(seed=self._seeds)
        self.mask_size = choices(self.action_spec) if "action_mask" in infos else 0
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs
        self._resetting: Flags = np.zeros(self.num_rows, dtype=bool)

    def reset(self, slot: Slot) -> None:
        """Start every env anew from its own seed."""
        obs, infos = self._env.reset(seed=self._seeds)
        self._resetting[:] = False
        self._write(obs, infos, slot)

    def step(self, actions: NDArray[Any], slot: Slot) -> None:
        """Step the vector env and fill the slot as if it reset in the same step."""
        obs, reward, terminated, truncated, infos = self._env.step(
            actions.astype(self._env.single_action_space.dtype, copy=False)
        )
        slot.reward[:], slot.terminated[:], slot.truncated[:] = reward, terminated, truncated
        slot.valid[:] = ~self._resetting
        if self._truncation_as_termination:
            slot.terminated[:] |= slot.truncated
            slot.truncated[:] = False
        ended = slot.ended
        if self._mode is AutoresetMode.NEXT_STEP:
            # A row that ended shows its final observation now and resets in the next step.
            self._keep_final(obs, ended)
            self._resetting = ended.copy()
        elif ended.any() and self._mode is AutoresetMode.SAME_STEP:
            self._keep_reported_final(infos, slot)
        elif ended.any():
            self._keep_final(obs, ended)
            obs, infos = self._env.reset(options={"reset_mask": ended.copy()})
        self._write(obs, infos, slot)

    def describe(self, row: int) -> str:
        """Env index and seed."""
        return f"env {row} (seed {self._seeds[row]})"

    def save_state(self) -> dict[str, Any] | None:
        """A foreign vector env cannot say what state it is in."""
        return None

    def load_state(self, state: dict[str, Any]) -> None:
        """Never called: there is no state to load."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the vector env."""
        self._env.close()

    def _write(self, obs: Any, infos: dict[str, Any], slot: Slot) -> None:
        for row in range(self.num_rows):
            self._writer.write(_row(obs, row), slot.obs, row, self.describe)
        if slot.action_mask is None:
            return
        if "action_mask" not in infos:
            raise EnvError("the vector env gave no 'action_mask' in its infos, but did before")
        for row in range(self.num_rows):
            mask = _row(infos["action_mask"], row)
            slot.action_mask[row] = flat_mask(mask, self.mask_size, self.describe(row))
        slot.action_mask[self._resetting] = True  # their next action is ignored

    def _keep_final(self, obs: Any, ended: Flags) -> None:
        for row in np.flatnonzero(ended):
            self._writer.write(_row(obs, int(row)), self.final_obs, int(row), self.describe)

    def _keep_reported_final(self, infos: dict[str, Any], slot: Slot) -> None:
        reported = infos.get("final_obs")
        for row in np.flatnonzero(slot.ended):
            final = None if reported is None else reported[row]
            if final is not None:
                self._writer.write(final, self.final_obs, int(row), self.describe)
            elif slot.truncated[row]:
                raise EnvError(
                    f"{self.describe(int(row))} was truncated without infos['final_obs'], so its value cannot be"
                    " bootstrapped; supply it, or set env.truncation_as_termination: true"
                )


def _row(batch: Any, row: int) -> Any:
    """Row i of a batched observation, through dicts and tuples."""
    if isinstance(batch, dict):
        return {key: _row(part, row) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_row(part, row) for part in batch)
    return batch[row]
