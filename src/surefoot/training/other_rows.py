"""The rows of several processes in a checkpoint: those of the first under `collector`, the others beside it."""

from collections.abc import Mapping
from typing import Any

from surefoot.machine.ranks import Ranks
from surefoot.storage.saved import Saved

OTHER_ROWS = "other_rows"


def own_rows(state: Mapping[str, Any], ranks: Ranks) -> Mapping[str, Any]:
    """The state with this process's rows; those of another number of processes start new episodes."""
    others = Saved(state)[OTHER_ROWS].items() if OTHER_ROWS in state else []
    if "collector" not in state or len(others) + 1 == ranks.size == 1:
        return state
    if len(others) + 1 == ranks.size:
        return {**state, "collector": [state["collector"], *(other.value for other in others)][ranks.rank]}
    rows = Saved(state)["collector"]
    envs = rows.get("envs")
    values = rows.get("parameters") if envs is None else envs.get("parameters")
    return {**state, "collector": {**rows.value, "envs": None, "parameters": {} if values is None else values.value}}
