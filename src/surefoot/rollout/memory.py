"""How much memory a rollout takes, known before it is taken."""

import numpy as np
import torch

from surefoot.core.errors import ConfigError
from surefoot.core.memory import free_memory, readable
from surefoot.core.records import Chunks
from surefoot.core.tree import tree_items
from surefoot.envs.protocol import VecEnv
from surefoot.policies.policy import Policy

_SCALARS = 4 * 7 + 4
"""Bytes of a transition beside observation and action: seven floats (two of them targets) and four flags."""
_COPIES = 2
"""The buffer itself, and the learner's copy of its valid steps."""


def rollout_bytes(num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> int:
    """What a rollout and learning from it take at least."""
    head = policy.head
    obs: int = sum(spec.size * np.dtype(spec.dtype).itemsize for _, spec in tree_items(env.obs_spec))
    action = int(np.prod(head.action_shape)) * torch.empty(0, dtype=head.action_dtype).element_size()
    state = sum(part.numel() * part.element_size() for part in policy.initial_state(1)) * len(chunks)
    return _COPIES * env.num_rows * ((num_steps + 1) * (obs + action + env.mask_size + _SCALARS) + state)


def check_memory(num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> None:
    """Refuse a rollout that does not fit, before anything is allocated."""
    needed, free = rollout_bytes(num_steps, env, policy, chunks), free_memory()
    if needed > free:
        raise ConfigError(
            [
                f"rollout.num_steps: {num_steps} steps of {env.num_rows} rows take {readable(needed)}, but only"
                f" {readable(free)} are free; lower rollout.num_steps or rollout.num_envs"
            ]
        )
