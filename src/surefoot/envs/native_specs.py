"""What the core says of its environments, in Surefoot's own terms."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from surefoot.data.specs import ArraySpec, Bound, ObsSpec
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.declared import Declared
from surefoot.envs.protocol.metrics import declared_metrics
from surefoot.envs.protocol.parameters import declared_parameters
from surefoot.errors import EnvError

if TYPE_CHECKING:
    from surefoot.native import Engine


def core_obs_spec(core: "Engine") -> ObsSpec:
    """The observation: its leaves by key, or the only one, which has none."""
    leaves = {
        key: ArraySpec("box", tuple(shape), "float32", _bound(low), _bound(high))
        for key, shape, low, high in core.obs_parts
    }
    return leaves[""] if list(leaves) == [""] else leaves


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
    defaults = {name: np.array(values).reshape(shape) for name, shape, values, _ in core.parameters}
    of_agent = [name for name, *_, is_of_agent in core.parameters if is_of_agent]
    parameters = declared_parameters(defaults, "the native env", of_agent)
    return Declared(declared_metrics(dict(core.metrics), {}, "the native env"), parameters)


def set_in_core(core: "Engine", values: Values, defaults: Values) -> None:
    """Set checked values of parameters; if an env refuses one, all envs keep those they had."""
    names = list(defaults)
    held = {name: core.parameter(names.index(name)) for name in values}
    try:
        for name, value in values.items():
            per_env = value[None] if defaults[name].shape else value[:: core.num_agents]
            shape = held[name].shape
            values_of_envs = np.broadcast_to(per_env.reshape(-1, shape[1]), shape)
            core.set_parameter(names.index(name), np.ascontiguousarray(values_of_envs, dtype=np.float64))
    except (ValueError, EnvError) as error:
        for name, value in held.items():
            core.set_parameter(names.index(name), value)
        raise EnvError(f"the envs rejected the parameters {', '.join(values)}: {error}") from error


def _bound(values: Sequence[float]) -> Bound:
    """One number where all are equal, in float32, as Gymnasium's bounds are."""
    rounded = np.asarray(values, np.float32).astype(np.float64)
    is_one = len(rounded) > 0 and bool((rounded == rounded[0]).all())
    return float(rounded[0]) if is_one else tuple(rounded.tolist())
