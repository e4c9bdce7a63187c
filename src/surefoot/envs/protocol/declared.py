"""What an env declares: its spaces, metrics and parameters."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items
from surefoot.envs.protocol.agent_parameters import Values
from surefoot.envs.protocol.metrics import declared_metrics, with_success_rate
from surefoot.envs.protocol.parameters import declared_parameters
from surefoot.errors import EnvError


@dataclass(frozen=True, eq=False)
class Declared:
    """Declared spaces, metrics and parameters, the same for every env of a run."""

    metrics: dict[str, str] = field(default_factory=dict)
    parameters: Values = field(default_factory=dict)
    spaces: tuple[ObsSpec, ArraySpec] | None = None
    """Of observations and actions; None where one process alone knows all envs."""

    @staticmethod
    def by(
        attribute: Callable[[str], Any],
        chosen: Mapping[str, str],
        who: str,
        spaces: tuple[ObsSpec, ArraySpec] | None = None,
    ) -> "Declared":
        """From the attributes of an env (None if it has none); `chosen` is the setting env.metrics."""
        own = attribute("metrics")
        metrics = declared_metrics(own, chosen, who)
        if own is None:
            metrics = with_success_rate(metrics)
        has_parameters = attribute("set_parameters") is not None
        names = attribute("agent_parameters")
        parameters = declared_parameters(attribute("parameters"), who, names) if has_parameters else {}
        return Declared(metrics, parameters, spaces)

    def refuse_differences(self, others: Iterable[tuple[str, "Declared"]]) -> None:
        """Raise an error if another env declares something different."""
        for who, other in others:
            if self.spaces is not None and other.spaces is not None:
                for what, our, their in zip(("observation", "action"), self.spaces, other.spaces, strict=True):
                    if our != their:
                        raise EnvError(
                            f"{who} has the {what} space {_shown(their)}, but the first env has {_shown(our)}; make"
                            " them equal"
                        )
            for what, ours, theirs in (
                ("metrics", list(self.metrics.items()), list(other.metrics.items())),
                ("parameters", _shapes(self.parameters), _shapes(other.parameters)),
            ):
                if ours != theirs:
                    raise EnvError(
                        f"{who} declares the {what} {theirs}, but the first env declares {ours}; make them equal"
                    )


def _shown(spec: ObsSpec) -> str:
    texts = []
    for key, one in tree_items(spec):
        choices = f" with {list(one.sizes)} choices" if one.sizes else ""
        bounds = f" from {one.low} to {one.high}" if one.low != -math.inf or one.high != math.inf else ""
        texts.append(f"{key} {one.kind} {list(one.shape)}{choices}{bounds}".strip())
    return ", ".join(texts)


def _shapes(parameters: Values) -> list[tuple[str, ...]]:
    return [(name, str(default.shape), str(default.dtype)) for name, default in parameters.items()]
