"""Metrics and parameters that an env declares in addition to its spaces."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.errors import EnvError
from surefoot.envs.protocol.metrics import declared_metrics
from surefoot.envs.protocol.parameters import Values, declared_parameters


@dataclass(frozen=True, eq=False)
class Declared:
    """Declared metrics and parameters, the same for every env of a run."""

    metrics: dict[str, str] = field(default_factory=dict)
    parameters: Values = field(default_factory=dict)

    @staticmethod
    def by(attribute: Callable[[str], Any], chosen: Mapping[str, str], who: str) -> "Declared":
        """From the attributes of an env (None if it has none); `chosen` is the setting env.metrics."""
        metrics = declared_metrics(attribute("metrics"), chosen, who)
        has_parameters = attribute("set_parameters") is not None
        return Declared(metrics, declared_parameters(attribute("parameters"), who) if has_parameters else {})

    def refuse_differences(self, others: Iterable[tuple[str, "Declared"]]) -> None:
        """Raise an error if another env declares something different."""
        for who, other in others:
            for what, ours, theirs in (
                ("metrics", list(self.metrics.items()), list(other.metrics.items())),
                ("parameters", _shapes(self.parameters), _shapes(other.parameters)),
            ):
                if ours != theirs:
                    raise EnvError(
                        f"{who} declares the {what} {theirs}, but the first env declares {ours}; make them equal"
                    )


def _shapes(parameters: Values) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, default.shape) for name, default in parameters.items()]
