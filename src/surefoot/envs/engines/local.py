"""The `local` engine: all envs in this process, one after another."""

from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import Engine, RowSpecs, engines, env_groups, joined_state, rows_of_tree, state_of_envs
from surefoot.envs.protocol import Slot, new_slot
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.parameters import values_of_rows
from surefoot.errors import EnvError
from surefoot.settings.config import RolloutConfig


@engines.register("local")
class LocalEngine(Engine):
    """One shard per group; for debugging, and for envs that step faster than processes can communicate."""

    name = "local"
    keeps_cores_busy = False

    def __init__(self, blueprint: Blueprint, config: RolloutConfig) -> None:
        self._envs = env_groups(blueprint.num_envs, config, overlaps=False)
        self._shards = [blueprint.make(envs) for envs in self._envs]
        self._lay_out(self._envs, RowSpecs.of(self._shards[0], len(self._envs[0])), blueprint.first_env)
        of_groups = [
            (f"env {envs.start}", shard.declared) for envs, shard in zip(self._envs, self._shards, strict=True)
        ]
        self._shards[0].declared.refuse_differences(of_groups)
        self.final_obs = new_slot(self.num_rows, self.obs_spec, 0).obs
        for shard, rows in zip(self._shards, self.groups, strict=True):
            shard.final_obs = rows_of_tree(self.final_obs, rows)

    def reset(self, slot: Slot, step: int = 0) -> None:
        """Reset every env."""
        for shard, rows in zip(self._shards, self.groups, strict=True):
            shard.reset(slot.of_rows(rows), step)

    def send(self, group: int, actions: NDArray[Any]) -> None:
        """Store the actions."""
        self._shards[group].send(0, actions)

    def receive(self, group: int, slot: Slot) -> None:
        """Step the envs."""
        self._shards[group].receive(0, slot.of_rows(self.groups[group]))

    def describe(self, row: int) -> str:
        """Env index and seed."""
        shard, rows = next(pair for pair in zip(self._shards, self.groups, strict=True) if row < pair[1].stop)
        return shard.describe(row - rows.start)

    def _apply_parameters(self, values: Values, before: Values) -> None:
        try:
            self._share(values)
        except EnvError:
            with suppress(EnvError):
                self._share(self._held(values, before))
            raise

    def _share(self, values: Values) -> None:
        for shard, rows in zip(self._shards, self.groups, strict=True):
            shard.set_parameters(values_of_rows(values, self.parameters, rows))

    def save_state(self) -> dict[str, Any] | None:
        """Snapshots of all envs, or None if one of them cannot be saved."""
        return self._with_parameters(joined_state([shard.save_state() for shard in self._shards]))

    def load_state(self, state: dict[str, Any], step: int = 0) -> None:
        """Continue from snapshots."""
        self._restore_from(state)
        for shard, envs in zip(self._shards, self._envs, strict=True):
            shard.load_state(state_of_envs(state, envs), step)

    def close(self) -> None:
        """Close the envs."""
        for shard in self._shards:
            shard.close()
