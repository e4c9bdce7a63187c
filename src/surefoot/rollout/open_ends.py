"""Final observations of truncated episodes, valued in one batch at the end of the rollout (S3, docs/semantics.md)."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.tree import tree_map
from surefoot.envs.protocol import ArrayTree, Flags
from surefoot.policies.policy import Policy


@dataclass
class OpenEnds:
    """(step, row) of each truncation, with its final observation and recurrent state (S6)."""

    _steps: list[Tensor] = field(default_factory=list)
    _rows: list[Tensor] = field(default_factory=list)
    _obs: list[Obs] = field(default_factory=list)
    _states: list[State] = field(default_factory=list)

    def keep(self, step: int, group: slice, where: Flags, final_obs: ArrayTree, state: State) -> None:
        """Copy the final observations of the flagged rows of a group: the env reuses their memory."""
        in_group = np.flatnonzero(where[group])
        if in_group.size == 0:
            return
        rows = in_group + group.start
        index = torch.from_numpy(rows)
        self._steps.append(torch.full_like(index, step))
        self._rows.append(index)
        self._obs.append(tree_map(lambda leaf: torch.from_numpy(leaf[rows]), final_obs))
        self._states.append(tuple(tensor[torch.from_numpy(in_group)] for tensor in state))

    def value_into(self, final_value: Tensor, policy: Policy) -> None:
        """Write V(final_obs) to `[T, N]` where episodes were truncated, and 0 elsewhere."""
        final_value.zero_()
        if not self._steps:
            return
        obs: Obs = tree_map(lambda *leaves: torch.cat(leaves), *self._obs)
        state = tuple(torch.cat(tensors) for tensors in zip(*self._states, strict=True))
        rows = torch.cat(self._rows)
        # The final observation belongs to the old episode: keep its state, and no episode start.
        output = policy(obs, state, torch.zeros_like(rows, dtype=torch.bool))
        final_value[torch.cat(self._steps), rows] = output.value
