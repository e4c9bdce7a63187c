"""Parameters that belong to the agent, such as weights of objectives: the same for all envs, saved with the policy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

AGENT_PARAMETERS = "agent_parameters"
"""The attribute of an env that names those that belong to the agent, and their entry in checkpoints."""

Values = dict[str, NDArray[np.floating[Any]]]
"""Parameters by name. Defaults have the shape of one value; current values are `[N]` for scalars, and one array for
all rows for arrays. Those that belong to the agent are float32 and read-only, all others float64."""


def is_of_agent(value: NDArray[Any]) -> bool:
    """Whether a default or a value is one of a parameter that belongs to the agent, not to the envs of a rollout."""
    return value.dtype == np.float32


def agent_values(env: Any) -> Values:
    """The values of all parameters that belong to the agent: those that are set, or the defaults."""
    return {
        name: env.parameter_values.get(name, default)
        for name, default in env.parameters.items()
        if is_of_agent(default)
    }


def without_agents(values: Values) -> Values:
    """The values that belong to the envs of a rollout: they are saved with those, the agent's with the policy."""
    return {name: value for name, value in values.items() if not is_of_agent(value)}


def set_agent_values(env: Any, values: Mapping[str, Any]) -> None:
    """Give new envs what belongs to the agent; names that they do not declare are left out."""
    known = {name: value for name, value in values.items() if name in agent_values(env)}
    if known:
        env.set_parameters(known)
