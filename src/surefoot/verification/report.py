"""What a verification found: one component a row, and the worst difference of each."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from torch import Tensor

from surefoot.verification.differences import count_unequal, largest_difference

Verdict = Literal["ok", "DIFFERS", "not applicable"]
Measure = Literal["bits", "share", "count", "seen"]
"""How a difference is told: largest of unequal bits, largest as a share of the numbers' size, how many, not at all."""


@dataclass(frozen=True)
class Component:
    """One thing that was compared; `note` says why it was not, or what differs."""

    name: str
    compared: str
    difference: float | None
    tolerance: float | None
    verdict: Verdict
    measure: Measure = "seen"
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All components of one task; `path` is the one that was checked, `reason` says why it is not the native one."""

    target: str
    path: Literal["native", "stepwise"]
    reason: str
    seed: int
    components: tuple[Component, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differing

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the components that differ, each once."""
        return tuple(dict.fromkeys(part.name for part in self.components if part.verdict == "DIFFERS"))

    def to_json(self) -> dict[str, Any]:
        """For machines; a difference that is no number is a string, which `float` reads back."""
        parts = [asdict(part) for part in self.components]
        for part in parts:
            if part["difference"] is not None and not math.isfinite(part["difference"]):
                part["difference"] = str(part["difference"])
        return {
            "target": self.target,
            "path": self.path,
            "reason": self.reason,
            "seed": self.seed,
            "ok": self.ok,
            "differing": list(self.differing),
            "components": parts,
        }


class Findings:
    """Collects components; the same one compared several times is one row with its worst result."""

    def __init__(self) -> None:
        self._components: dict[tuple[str, str], Component] = {}

    def components(self) -> tuple[Component, ...]:
        """In the order in which they were first compared, those of one name together."""
        names = list(dict.fromkeys(part.name for part in self._components.values()))
        return tuple(sorted(self._components.values(), key=lambda part: names.index(part.name)))

    def has_broken(self, name: str) -> bool:
        """Whether a component differs already."""
        return any(part.name == name and part.verdict == "DIFFERS" for part in self._components.values())

    def bits(self, name: str, compared: str, ours: Tensor, reference: Tensor) -> None:
        """Two tensors that must be equal to the last bit."""
        unequal, total = count_unequal(ours, reference), max(ours.numel(), reference.numel())
        note = f"{unequal:,} of {total:,} differ" if unequal else ""
        difference = largest_difference(ours, reference) if unequal else 0.0
        self._add(Component(name, compared, difference, 0.0, "DIFFERS" if unequal else "ok", "bits", note))

    def within(
        self, name: str, compared: str, ours: Tensor, reference: Tensor, tolerance: float, scale: float = 1.0
    ) -> None:
        """Two tensors whose largest difference, as a share of a scale, must not exceed a tolerance."""
        difference = largest_difference(ours, reference) / scale
        # Not `difference > tolerance`: NaN must differ.
        verdict: Verdict = "ok" if difference <= tolerance else "DIFFERS"
        self._add(Component(name, compared, difference, tolerance, verdict, "share"))

    def count(self, name: str, compared: str, wrong: int, total: int, what: str) -> None:
        """So many of a total are not as they must be."""
        note = f"{wrong:,} of {total:,} {what}" if wrong else ""
        self._add(Component(name, compared, float(wrong), 0.0, "DIFFERS" if wrong else "ok", "count", note))

    def broken(self, name: str, compared: str, note: str) -> None:
        """Something that cannot be measured is plainly wrong."""
        self._add(Component(name, compared, None, None, "DIFFERS", note=note))

    def fine(self, name: str, compared: str, note: str = "") -> None:
        """Something that cannot be measured is as it must be."""
        self._add(Component(name, compared, None, None, "ok", note=note))

    def skip(self, name: str, compared: str, reason: str) -> None:
        """Nothing to compare here."""
        self._add(Component(name, compared, None, None, "not applicable", note=reason))

    def _add(self, new: Component) -> None:
        key = (new.name, new.compared)
        known = self._components.get(key)
        if known is None or _badness(new) > _badness(known):
            self._components[key] = new


def _badness(component: Component) -> tuple[int, float]:
    order = {"not applicable": 0, "ok": 1, "DIFFERS": 2}
    difference = 0.0 if component.difference is None else component.difference
    return order[component.verdict], np.inf if math.isnan(difference) else difference
