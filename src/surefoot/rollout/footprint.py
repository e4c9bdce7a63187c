"""Size of a rollout in bytes, computed before it is allocated."""

from surefoot.data.records import Chunks
from surefoot.envs.protocol import VecEnv
from surefoot.errors import ConfigError
from surefoot.machine.ram import free_ram, readable
from surefoot.policies.policy import Policy
from surefoot.rollout.fields import fields_of

_TARGETS = 2 * 4
"""Bytes of advantages and returns per transition."""
_COPIES = 2
"""The buffer, and the learner's copy of its valid steps."""


def rollout_bytes(num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> int:
    """Lower bound of the memory of a rollout and an update."""
    per_row = sum(field.num_bytes(num_steps) for field in fields_of(env, policy).values()) + num_steps * _TARGETS
    state = sum(tensor.numel() * tensor.element_size() for tensor in policy.initial_state(1)) * len(chunks)
    return _COPIES * env.num_rows * (per_row + state)


def check_fits(num_steps: int, env: VecEnv, policy: Policy, chunks: Chunks) -> None:
    """Reject a rollout that does not fit into memory, before anything is allocated."""
    needed, free = rollout_bytes(num_steps, env, policy, chunks), free_ram()
    if needed > free:
        raise ConfigError(
            [
                f"rollout.num_steps: {num_steps} steps of {env.num_rows} rows take {readable(needed)} of memory, but"
                f" only {readable(free)} are available; lower rollout.num_steps or rollout.num_envs"
            ]
        )
