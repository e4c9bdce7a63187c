"""The tensors of one rollout, allocated once: environments write into them through numpy views."""

from collections.abc import Iterator
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.moments import ObsMoments
from surefoot.data.records import Chunks, Obs, Rollout, RolloutStats, State
from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.protocol import ALL_ROWS, Slot, VecEnv
from surefoot.errors import CheckpointError
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.rollout.episodes import EpisodeTracker
from surefoot.rollout.fields import NAMED, POLICY, Field, fields_of
from surefoot.storage.saved import Saved

_SLOT = tuple(item.name for item in dataclass_fields(Slot))


class RolloutBuffer:
    """T steps of N rows; every field of the table is an attribute, such as `buffer.reward`."""

    def __init__(self, num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> None:
        steps, rows = num_steps, env.num_rows
        self.fields, self._critic = fields_of(env, policy), getattr(policy, "critic", None)
        self.tensors: dict[str, Any] = {name: field.allocate(steps, rows) for name, field in self.fields.items()}
        self.metric_names, self._unread_obs = tuple(env.metrics), policy.unread_obs()
        self.last_value = torch.zeros(rows)
        self.chunks = chunks
        self.state = tuple(
            torch.zeros(len(chunks), *tensor.shape, dtype=tensor.dtype) for tensor in policy.initial_state(rows)
        )
        self._state_steps = chunks.state_steps
        self._start = self.episode_start.numpy()
        # Views are created once: indexing a tensor costs as much as a small operation.
        self._inputs = [[self._inputs_at(step, rows) for step in range(steps)] for rows in env.groups]
        kept = {name: self.tensors[name] for name, field in self.fields.items() if field.writer == POLICY}
        self._outputs = [
            [{name: whole[step, rows] for name, whole in kept.items()} for step in range(steps)] for rows in env.groups
        ]
        self.slots = [self._slot(step) for step in range(steps)]
        self._views = {name: field.steps(self.tensors[name]) for name, field in self.fields.items()}
        self._carried = [(leaf[0], leaf[-1]) for leaf in self._leaves_with_next()]
        self.flat = {name: self._flat(name) for name in self.fields}
        """The fields as arrays `[T, N, size]` for the core, one for each leaf."""

    def __getattr__(self, name: str) -> Any:
        if name == "tensors" or name not in self.tensors:
            raise AttributeError(f"a rollout has no field '{name}'")
        return self.tensors[name]

    def add(self, field: Field) -> None:
        """Record another field from the next rollout on."""
        self.fields[field.name] = field
        self.tensors[field.name] = field.allocate(*self.reward.shape)
        self.flat[field.name] = self._flat(field.name)
        self._views[field.name] = field.steps(self.tensors[field.name])

    @property
    def opening(self) -> Slot:
        """The slot for the observation with which the next rollout starts."""
        return self.slots[-1]

    def inputs_at(self, step: int, state: State, group: int | None = None) -> tuple[Obs, State, Tensor, Tensor | None]:
        """The policy's inputs at a step, for a group of rows or for all; -1 is after the last step."""
        obs, episode_start, mask = self._inputs_at(step) if group is None else self._inputs[group][step]
        return obs, state, episode_start, mask

    def record(self, step: int, group: int, action: Tensor, output: PolicyOutput) -> None:
        """Store the policy's fields of a step."""
        kept = self._outputs[group][step]
        kept["action"].copy_(action)
        kept["log_prob"].copy_(output.distribution.log_prob(action))
        kept["value"].copy_(output.value)
        if "prediction" in kept and self._critic is not None:
            kept["prediction"].copy_(self._critic.decode(output.prediction))
        for name, extra in output.extras.items():
            kept[name].copy_(extra)

    def keep_state(self, step: int, rows: slice, state: State) -> None:
        """Store the recurrent state before a step, if a training sequence starts there."""
        if not state or step not in self._state_steps:
            return
        chunks = [chunk for chunk, kept_at in enumerate(self._state_steps) if kept_at == step]
        for kept, tensor in zip(self.state, state, strict=True):
            kept[chunks, rows] = tensor

    def mark_starts(self, step: int, rows: slice) -> None:
        """Mark the episode starts after a step of some rows."""
        slot, following = self.slots[step], self._start[step + 1, rows]
        # After an auto-reset step or a dead agent, the episode has not started yet; memory must not span masked steps.
        np.logical_not(slot.valid[rows], out=following)
        following |= slot.terminated[rows] | slot.truncated[rows]

    def disown(self, is_other: Tensor, is_left: Tensor) -> None:
        """Take the learning policy out of steps `[T, N]` of others, and its memory out of those that it left."""
        for name, field in self.fields.items():
            if name == "final_value" or (field.writer == POLICY and name != "action"):
                self.tensors[name][is_other] = 0
        self.last_value[is_other[-1]] = 0
        self.valid[is_other] = False
        for chunk, step in enumerate(self._state_steps):
            for tensor in self.state:
                tensor[chunk, is_left[step - 1] & (step > 0)] = 0

    def carry_over(self) -> None:
        """The next rollout starts with the observation after the last step."""
        for first, last in self._carried:
            np.copyto(first, last)

    def stats(self, episodes: EpisodeTracker) -> RolloutStats:
        """Statistics of the finished rollout."""
        obs, metrics = self.fields["obs"].steps(self.obs), self.tensors.get("metrics")
        return episodes.absorb(obs, self.reward, self.terminated | self.truncated, self.valid, metrics)

    def rollout(self, stats: RolloutStats, obs_moments: ObsMoments | None = None) -> Rollout:
        """The finished rollout: views of these tensors, valid until the next collection."""
        views: dict[str, Any] = {name: tree_map(lambda leaf: leaf, view) for name, view in self._views.items()}
        extras = {name: view for name, view in views.items() if name not in NAMED}
        learned = tuple(name for name in extras if self.fields[name].is_learned)
        metrics = extras.pop("metrics", None)
        extras |= {f"env/{name}": metrics[..., place] for place, name in enumerate(self.metric_names)}
        return Rollout(
            **{"action_mask": None, **{name: view for name, view in views.items() if name in NAMED}},
            last_value=self.last_value,
            state=self.state,
            stats=stats,
            obs_moments=obs_moments,
            chunks=self.chunks if self.state else None,
            extras=extras,
            learned_extras=learned,
            others=self._others(),
            unread_obs=self._unread_obs,
        )

    def _others(self) -> Tensor | None:
        """Steps `[T, N]` in which another policy acted, if there are any."""
        is_other = self.tensors["actor"] > 0 if "actor" in self.fields else None
        return is_other if is_other is not None and is_other.any() else None

    def opening_state(self) -> dict[str, Any]:
        """For checkpoints: the fields with which the next rollout starts."""
        return {name: tree_map(lambda leaf: leaf[-1].clone(), whole) for name, whole in self._with_next().items()}

    def opening_of(self, rows: slice) -> dict[str, Any]:
        """The same for some rows, as arrays that are views."""
        return {name: tree_map(lambda leaf: leaf[-1, rows].numpy(), whole) for name, whole in self._with_next().items()}

    def fits(self, opening: dict[str, Any]) -> bool:
        """Whether a saved opening has the same number of rows."""
        return len(opening["episode_start"]) == len(self.last_value)

    def check_opening(self, saved: Saved) -> bool:
        """Refuse an opening that no env has shown; returns whether it has the same number of rows."""
        start = saved["episode_start"].array()
        if not isinstance(start, Tensor) or start.dim() != 1:
            raise saved["episode_start"].wrong("a tensor with one flag per row")
        if not self.fits(saved.value):
            return False
        own = self.opening_state()
        saved.only(own).like(own)  # old checkpoints list fields that are not used, too
        for (key, spec), (_, leaf) in zip(
            tree_items(self.fields["obs"].spec), tree_items(saved.value["obs"]), strict=True
        ):
            if spec.sizes:
                sizes = torch.tensor(spec.sizes).reshape(spec.shape)
                if ((leaf < 0) | (leaf >= sizes)).any():
                    raise CheckpointError(f"{saved.path}.obs{'.' * bool(key)}{key} is outside its space")
        return True

    def load_opening(self, opening: dict[str, Any]) -> None:
        """From a checkpoint."""
        for name, whole in self._with_next().items():
            tree_map(lambda leaf, saved: leaf[-1].copy_(saved), whole, opening[name])

    def _with_next(self) -> dict[str, Any]:
        return {name: self.tensors[name] for name, field in self.fields.items() if field.has_next}

    def _leaves_with_next(self) -> Iterator[NDArray[Any]]:
        for whole in self._with_next().values():
            yield from (leaf.numpy() for _, leaf in tree_items(whole))

    def _flat(self, name: str) -> list[NDArray[Any]]:
        return [leaf.numpy().reshape(*leaf.shape[:2], -1) for _, leaf in tree_items(self.tensors[name])]

    def _inputs_at(self, step: int, rows: slice = ALL_ROWS) -> tuple[Obs, Tensor, Tensor | None]:
        obs: Obs = tree_map(lambda leaf: leaf[step, rows], self.obs)
        mask = self.tensors.get("action_mask")
        return obs, self.episode_start[step, rows], None if mask is None else mask[step, rows]

    def _slot(self, step: int) -> Slot:
        """Views of the env fields of a step; observations and masks belong to the next step."""
        views: dict[str, Any] = {"action_mask": None, "metrics": np.empty((len(self.last_value), 0), np.float32)}
        for name in _SLOT:
            if name in self.fields:
                at = step + self.fields[name].has_next
                views[name] = tree_map(lambda leaf, at=at: leaf[at].numpy(), self.tensors[name])
        return Slot(**views)
