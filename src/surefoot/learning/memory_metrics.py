"""Metrics of recurrent policies: magnitude of the states, and padding of sequences."""

from surefoot.core.moments import Moments
from surefoot.core.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples
from surefoot.telemetry import names


def memory_metrics(rollout: Rollout, samples: Samples, policy: Policy) -> dict[str, float]:
    """Norm, mean and std of every part of the initial states of sequences; empty without memory."""
    if not rollout.state:
        return {}
    states = {
        name: part.reshape(*part.shape[:2], -1).float()
        for name, part in zip(policy.state_names(), rollout.state, strict=True)
    }
    norms = rollout.of_everyone({name: Moments.of(part.norm(dim=-1).flatten()) for name, part in states.items()})
    elements = rollout.of_everyone({name: Moments.of(part.flatten()) for name, part in states.items()})
    metrics = {names.PADDING: samples.padding}
    for name in states:
        metrics |= {
            f"{names.MEMORY_PREFIX}{name}_norm": float(norms[name].mean),
            f"{names.MEMORY_PREFIX}{name}_mean": float(elements[name].mean),
            f"{names.MEMORY_PREFIX}{name}_std": float(elements[name].var.sqrt()),
        }
    return metrics
