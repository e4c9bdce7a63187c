"""Metrics of recurrent policies: magnitude of the states, of every layer, and padding of sequences."""

from torch import Tensor

from surefoot.data.moments import Moments
from surefoot.data.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples
from surefoot.rollout.shared import merged_moments
from surefoot.telemetry import names


def memory_metrics(rollout: Rollout, samples: Samples, policy: Policy) -> dict[str, float]:
    """Norm, mean and std of every part of the initial states of sequences, and of its layers; empty without memory."""
    if not rollout.state:
        return {}
    states = {
        name: piece.reshape(*piece.shape[:2], -1).float()
        for part, state in zip(policy.state_names(), rollout.state, strict=True)
        for name, piece in _pieces(part, state).items()
    }
    norms = merged_moments(rollout, {name: Moments.of(piece.norm(dim=-1).flatten()) for name, piece in states.items()})
    elements = merged_moments(rollout, {name: Moments.of(piece.flatten()) for name, piece in states.items()})
    metrics = {names.PADDING: samples.padding}
    for name in states:
        metrics |= {
            f"{names.MEMORY_PREFIX}{name}_norm": float(norms[name].mean),
            f"{names.MEMORY_PREFIX}{name}_mean": float(elements[name].mean),
            f"{names.MEMORY_PREFIX}{name}_std": float(elements[name].var.sqrt()),
        }
    return metrics


def _pieces(part: str, state: Tensor) -> dict[str, Tensor]:
    """A part of the state `[sequences, N, ...]`; also its layers if it is `[sequences, N, layers, size]`."""
    layers = state.unbind(2) if state.ndim == 4 and state.shape[2] > 1 else ()
    return {part: state} | {f"{part}_layer{index}": layer for index, layer in enumerate(layers)}
