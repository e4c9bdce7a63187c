"""The memory of one rollout, allocated once: torch tensors that envs write into through numpy views."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.moments import ObsMoments
from surefoot.core.records import Chunks, Obs, Rollout, RolloutStats, State
from surefoot.core.tree import tree_map
from surefoot.envs.protocol import ALL_ROWS, Slot, VecEnv
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.rollout.episodes import EpisodeTracker


class RolloutBuffer:
    """T steps of N rows; observations and masks have one slot more, for what follows the last step."""

    def __init__(self, num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> None:
        steps, rows, head = num_steps, env.num_rows, policy.head
        self.obs: Any = tree_map(lambda spec: torch.as_tensor(spec.zeros(steps + 1, rows)), env.obs_spec)
        self.action = torch.zeros(steps, rows, *head.action_shape, dtype=head.action_dtype)
        self.log_prob, self.value, self.reward, self.final_value = (torch.zeros(steps, rows) for _ in range(4))
        self.terminated, self.truncated = (torch.zeros(steps, rows, dtype=torch.bool) for _ in range(2))
        self.valid = torch.ones(steps, rows, dtype=torch.bool)
        self.episode_start = torch.ones(steps + 1, rows, dtype=torch.bool)
        self.action_mask = torch.ones(steps + 1, rows, env.mask_size, dtype=torch.bool) if env.mask_size else None
        self.last_value = torch.zeros(rows)
        self.chunks = chunks
        self.state = tuple(
            torch.zeros(len(chunks), *part.shape, dtype=part.dtype) for part in policy.initial_state(rows)
        )
        self._state_steps = chunks.state_steps
        self._start = self.episode_start.numpy()
        # Views made once: indexing a tensor costs as much as a small operation on it.
        self._inputs = [[self._inputs_at(step, rows) for step in range(steps)] for rows in env.groups]
        kept = (self.action, self.log_prob, self.value)
        self._outputs = [[[whole[step, rows] for whole in kept] for step in range(steps)] for rows in env.groups]
        self.slots = [self._slot(step) for step in range(steps)]

    @property
    def opening(self) -> Slot:
        """Where envs put the observation that the next rollout begins with."""
        return self.slots[-1]

    def inputs_at(self, step: int, state: State, group: int | None = None) -> tuple[Obs, State, Tensor, Tensor | None]:
        """What the policy acts on at a step, in a group of rows or in all; -1 is after the last step."""
        obs, episode_start, mask = self._inputs_at(step) if group is None else self._inputs[group][step]
        return obs, state, episode_start, mask

    def record(self, step: int, group: int, action: Tensor, output: PolicyOutput) -> None:
        """Keep what the policy did at a step."""
        kept_action, kept_log_prob, kept_value = self._outputs[group][step]
        kept_action.copy_(action)
        kept_log_prob.copy_(output.distribution.log_prob(action))
        kept_value.copy_(output.value)

    def keep_state(self, step: int, rows: slice, state: State) -> None:
        """Keep the memory that rows have before a step, if a training sequence will begin with it."""
        if not state or step not in self._state_steps:
            return
        chunks = [chunk for chunk, kept_at in enumerate(self._state_steps) if kept_at == step]
        for kept, part in zip(self.state, state, strict=True):
            kept[chunks, rows] = part

    def mark_starts(self, step: int, rows: slice) -> None:
        """Say where episodes start, after a step that the envs of some rows have made."""
        slot, following = self.slots[step], self._start[step + 1, rows]
        # A row that only reset, or is dead, has not started yet; and nothing is remembered across what was not seen.
        np.logical_not(slot.valid[rows], out=following)
        following |= slot.terminated[rows] | slot.truncated[rows]

    def carry_over(self) -> None:
        """What followed the last step is where the next rollout begins."""
        tree_map(lambda leaf: leaf[0].copy_(leaf[-1]), self.obs)
        self.episode_start[0].copy_(self.episode_start[-1])
        if self.action_mask is not None:
            self.action_mask[0].copy_(self.action_mask[-1])

    def stats(self, episodes: EpisodeTracker) -> RolloutStats:
        """What the finished rollout tells about itself."""
        obs: Obs = tree_map(lambda leaf: leaf[:-1], self.obs)
        return episodes.absorb(obs, self.reward, self.terminated | self.truncated, self.valid)

    def rollout(self, stats: RolloutStats, obs_moments: ObsMoments | None = None) -> Rollout:
        """The finished rollout: views of this memory, good until the next collection."""
        return Rollout(
            obs=tree_map(lambda leaf: leaf[:-1], self.obs),
            action=self.action,
            log_prob=self.log_prob,
            value=self.value,
            reward=self.reward,
            terminated=self.terminated,
            truncated=self.truncated,
            final_value=self.final_value,
            episode_start=self.episode_start[:-1],
            valid=self.valid,
            last_value=self.last_value,
            action_mask=None if self.action_mask is None else self.action_mask[:-1],
            state=self.state,
            stats=stats,
            obs_moments=obs_moments,
            chunks=self.chunks if self.state else None,
        )

    def opening_state(self) -> dict[str, Any]:
        """For checkpoints: what the next rollout begins with."""
        return {
            "obs": tree_map(lambda leaf: leaf[-1].clone(), self.obs),
            "episode_start": self.episode_start[-1].clone(),
            "action_mask": None if self.action_mask is None else self.action_mask[-1].clone(),
        }

    def fits(self, opening: dict[str, Any]) -> bool:
        """Whether a saved opening has as many rows as we do."""
        return len(opening["episode_start"]) == self.episode_start.shape[1]

    def load_opening(self, opening: dict[str, Any]) -> None:
        """From a checkpoint."""
        tree_map(lambda leaf, saved: leaf[-1].copy_(saved), self.obs, opening["obs"])
        self.episode_start[-1].copy_(opening["episode_start"])
        if self.action_mask is not None:
            self.action_mask[-1].copy_(opening["action_mask"])

    def _inputs_at(self, step: int, rows: slice = ALL_ROWS) -> tuple[Obs, Tensor, Tensor | None]:
        obs: Obs = tree_map(lambda leaf: leaf[step, rows], self.obs)
        return obs, self.episode_start[step, rows], None if self.action_mask is None else self.action_mask[step, rows]

    def _slot(self, step: int) -> Slot:
        following = step + 1
        return Slot(
            obs=tree_map(lambda leaf: leaf[following].numpy(), self.obs),
            reward=self.reward[step].numpy(),
            terminated=self.terminated[step].numpy(),
            truncated=self.truncated[step].numpy(),
            valid=self.valid[step].numpy(),
            action_mask=None if self.action_mask is None else self.action_mask[following].numpy(),
        )
