"""Metrics of recurrent policies: magnitude of the states, and padding of sequences."""

from surefoot.core.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples
from surefoot.telemetry import names


def memory_metrics(rollout: Rollout, samples: Samples, policy: Policy) -> dict[str, float]:
    """Norm, mean and std of every part of the initial states of sequences; empty without memory."""
    if not rollout.state:
        return {}
    metrics = {names.PADDING: samples.padding}
    for name, part in zip(policy.state_names(), rollout.state, strict=True):
        states = part.reshape(*part.shape[:2], -1).float()
        metrics |= {
            f"{names.MEMORY_PREFIX}{name}_norm": float(states.norm(dim=-1).mean()),
            f"{names.MEMORY_PREFIX}{name}_mean": float(states.mean()),
            f"{names.MEMORY_PREFIX}{name}_std": float(states.std(correction=0)),
        }
    return metrics
