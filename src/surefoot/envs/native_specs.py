"""What the core says of its environments, in Surefoot's own terms."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surefoot.core.specs import ArraySpec, Bound, ObsSpec
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.metrics import declared_metrics

if TYPE_CHECKING:
    from surefoot.native import Engine


def core_obs_spec(core: "Engine") -> ObsSpec:
    """The observation: its parts by key, or the only one, which has none."""
    parts = {
        key: ArraySpec("box", tuple(shape), "float32", _bound(low), _bound(high))
        for key, shape, low, high in core.obs_parts
    }
    return parts[""] if list(parts) == [""] else parts


def core_action_spec(core: "Engine") -> ArraySpec:
    """The action."""
    space = core.action_space
    low, high = _bound(space["low"]), _bound(space["high"])
    dtype = "float32" if space["kind"] in ("box", "multi_binary") else "int64"
    return ArraySpec(
        space["kind"], tuple(space["shape"]), dtype, low, high, tuple(space["sizes"]), tuple(space["start"])
    )


def core_declared(core: "Engine") -> Declared:
    """Metrics and parameters."""
    parameters = {name: np.array(values).reshape(shape) for name, shape, values in core.parameters}
    return Declared(declared_metrics(dict(core.metrics), {}, "the native env"), parameters)


def _bound(values: Sequence[float]) -> Bound:
    """One number where all are equal, in float32, as Gymnasium's bounds are."""
    rounded = np.asarray(values, np.float32).astype(np.float64)
    is_one = len(rounded) > 0 and bool((rounded == rounded[0]).all())
    return float(rounded[0]) if is_one else tuple(rounded.tolist())
