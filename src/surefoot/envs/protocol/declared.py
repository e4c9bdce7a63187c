"""What an env declares beside its spaces: metrics that come out of it, and parameters that go into it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.core.errors import EnvError
from surefoot.envs.protocol.metrics import declared_metrics
from surefoot.envs.protocol.parameters import Values, declared_parameters


@dataclass(frozen=True, eq=False)
class Declared:
    """The same for every env of a run."""

    metrics: dict[str, str] = field(default_factory=dict)
    parameters: Values = field(default_factory=dict)

    @staticmethod
    def by(attribute: Callable[[str], Any], chosen: Mapping[str, str], who: str) -> "Declared":
        """As the attributes of an env say (None where it has none); `chosen` is the setting env.metrics."""
        metrics = declared_metrics(attribute("metrics"), chosen, who)
        has_parameters = attribute("set_parameters") is not None
        return Declared(metrics, declared_parameters(attribute("parameters"), who) if has_parameters else {})

    def refuse_differences(self, others: Iterable[tuple[str, "Declared"]]) -> None:
        """Every other env, given with its name, must declare the same."""
        for who, other in others:
            for what, ours, theirs in (
                ("metrics", list(self.metrics.items()), list(other.metrics.items())),
                ("parameters", _shapes(self.parameters), _shapes(other.parameters)),
            ):
                if ours != theirs:
                    raise EnvError(f"{who} declares the {what} {theirs}, the first env {ours}; they must be the same")


def _shapes(parameters: Values) -> list[tuple[str, tuple[int, ...]]]:
    return [(name, default.shape) for name, default in parameters.items()]
