"""A readable JSON dump of a run that ended in NaN: weights, data and the last iterations."""

import json
import logging
import math
from pathlib import Path
from typing import Any

from torch import Tensor

from surefoot.data.tree import tree_items
from surefoot.training.checkpoint import write_atomically
from surefoot.training.trainer import Trainer

_log = logging.getLogger("surefoot")


def write_dump(
    folder: Path, step: int, trouble: str, trainer: Trainer, iterations: list[dict[str, float]]
) -> Path | None:
    """Write nonfinite_step_N.json; returns None if that fails."""
    path = folder / f"nonfinite_step_{step:012d}.json"
    content = {
        "step": step,
        "trouble": trouble,
        "weights": _describe(trainer.policy.state_dict()),
        "optimizer": {
            kind: _describe(moments)
            for kind, moments in trainer.learner.gradient.state()["adam"].items()
            if isinstance(moments, dict)
        },
        "rollout": _describe(_rollout_tensors(trainer)),
        "iterations": [{name: _number(value) for name, value in metrics.items()} for metrics in iterations],
    }
    try:
        write_atomically(path, json.dumps(content, indent=1, allow_nan=False).encode())
    except OSError as error:
        _log.warning("failed to write the dump %s: %s", path, error.strerror)
        return None
    return path


def _rollout_tensors(trainer: Trainer) -> dict[str, Tensor]:
    buffer = trainer.collector.rows.buffer
    fields = (*buffer.tensors.items(), ("last_value", buffer.last_value))
    return {f"{name} {key}".strip(): leaf for name, field in fields for key, leaf in tree_items(field)}


def _describe(tensors: dict[str, Tensor]) -> dict[str, dict[str, Any]]:
    """Per tensor: the number of values that are not finite, and the magnitude of the others."""
    described = {}
    for name, tensor in tensors.items():
        finite = tensor[tensor.isfinite()].double()
        described[name] = {
            "shape": list(tensor.shape),
            "not_finite": tensor.numel() - finite.numel(),
            "norm": _number(float(finite.norm())),
            "largest": _number(float(finite.abs().max())) if finite.numel() else 0.0,
        }
    return described


def _number(value: float) -> float | str:
    """JSON has no NaN."""
    return value if math.isfinite(value) else str(value)
