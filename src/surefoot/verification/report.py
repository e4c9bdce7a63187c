"""The result of a verification: one row per component, with its worst difference: unequal elements, or the largest."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Numbers = Tensor | NDArray[Any] | float
Verdict = Literal["ok", "DIFFERS", "not applicable", "not compared"]
"""`not applicable`: the run has no such thing. `not compared`: it has, but nothing to compare it with."""
Path = Literal["native", "library", "stepwise"]
"""What was compared: the native path with the readable one, in which a library without a Python twin steps the envs of
both; or the readable path alone, with the protocol."""
Measure = Literal["bits", "share", "count", "seen"]
"""Unit of a difference: largest among unequal elements, largest relative to the scale, number of elements, none."""
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Component:
    """One comparison; `note` says what differs, or why it does not apply."""

    name: str
    compared: str
    difference: float | None
    tolerance: float | None
    verdict: Verdict
    measure: Measure = "seen"
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All components of one task; `path` says what was compared, `reason` why there is no whole native path."""

    target: str
    path: Path
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
        return tuple(dict.fromkeys(component.name for component in self.components if component.verdict == "DIFFERS"))

    @property
    def not_compared(self) -> tuple[str, ...]:
        """What the run has, but nothing was compared with."""
        uncovered = (component for component in self.components if component.verdict == "not compared")
        return tuple(f"{component.name}, {component.compared} ({component.note})" for component in uncovered)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; infinite and NaN differences become strings that `float` reads back."""
        components = [asdict(component) for component in self.components]
        for component in components:
            if component["difference"] is not None and not math.isfinite(component["difference"]):
                component["difference"] = str(component["difference"])
        return {
            "target": self.target,
            "path": self.path,
            "reason": self.reason,
            "seed": self.seed,
            "ok": self.ok,
            "differing": list(self.differing),
            "not_compared": list(self.not_compared),
            "components": components,
        }


class Findings:
    """Collects components; repeated comparisons of the same thing become one row with the worst result."""

    def __init__(self) -> None:
        self._components: dict[tuple[str, str], Component] = {}

    def components(self) -> tuple[Component, ...]:
        """In the order in which they were first compared, those of one name together."""
        names = list(dict.fromkeys(component.name for component in self._components.values()))
        return tuple(sorted(self._components.values(), key=lambda component: names.index(component.name)))

    def has_broken(self, name: str) -> bool:
        """Whether a component differs already."""
        return any(component.name == name and component.verdict == "DIFFERS" for component in self._components.values())

    def bits(self, name: str, compared: str, ours: Tensor, reference: Tensor) -> None:
        """Compare two tensors that must be equal bit for bit."""
        unequal, total = count_unequal(ours, reference), max(ours.numel(), reference.numel())
        note = f"{unequal:,} of {total:,} differ" if unequal else ""
        difference = largest_difference(ours, reference) if unequal else 0.0
        self._add(Component(name, compared, difference, 0.0, "DIFFERS" if unequal else "ok", "bits", note))

    def within(
        self, name: str, compared: str, ours: Numbers, reference: Numbers, tolerance: float, scale: float | None = None
    ) -> None:
        """Compare numbers whose largest difference, relative to a scale, must not exceed a tolerance.

        The scale is the magnitude of the reference if none is given. A single number is the reference of all of ours.
        """
        given, expected = (torch.as_tensor(numbers, dtype=torch.float64) for numbers in (ours, reference))
        if isinstance(reference, float | int):
            expected = expected.expand_as(given)
        difference = largest_difference(given, expected) / (magnitude(expected) if scale is None else scale)
        # Not `difference > tolerance`: NaN must differ.
        verdict: Verdict = "ok" if difference <= tolerance else "DIFFERS"
        self._add(Component(name, compared, difference, tolerance, verdict, "share"))

    def count(self, name: str, compared: str, wrong: int, total: int, what: str, allowed: int = 0) -> None:
        """Count elements that are wrong or exceptional; more than `allowed` of them are a difference."""
        note = f"{wrong:,} of {total:,} {what}" if wrong else ""
        verdict: Verdict = "DIFFERS" if wrong > allowed else "ok"
        self._add(Component(name, compared, float(wrong), float(allowed), verdict, "count", note))

    def broken(self, name: str, compared: str, note: str) -> None:
        """Record a violation that has no numeric difference."""
        self._add(Component(name, compared, None, None, "DIFFERS", note=note))

    def fine(self, name: str, compared: str, note: str = "") -> None:
        """Record a check that passed and has no numeric difference."""
        self._add(Component(name, compared, None, None, "ok", note=note))

    def skip(self, name: str, compared: str, reason: str) -> None:
        """Record a comparison that does not apply."""
        self._add(Component(name, compared, None, None, "not applicable", note=reason))

    def uncovered(self, name: str, compared: str, reason: str) -> None:
        """Record something that there is nothing to compare with."""
        self._add(Component(name, compared, None, None, "not compared", note=reason))

    def _add(self, new: Component) -> None:
        key = (new.name, new.compared)
        known = self._components.get(key)
        if known is None or _badness(new) > _badness(known):
            self._components[key] = new


def _badness(component: Component) -> tuple[int, float]:
    order = {"not applicable": 0, "ok": 1, "not compared": 2, "DIFFERS": 3}
    difference = 0.0 if component.difference is None else component.difference
    return order[component.verdict], np.inf if math.isnan(difference) else difference


def count_unequal(ours: Tensor, reference: Tensor) -> int:
    """Number of elements whose bits differ; all of them if shapes or types differ."""
    if ours.shape != reference.shape or ours.dtype != reference.dtype:
        return max(ours.numel(), reference.numel(), 1)
    if ours.numel() == 0:
        return 0
    bits = [_bytes(tensor).view(tensor.numel(), tensor.element_size()) for tensor in (ours, reference)]
    return int((bits[0] != bits[1]).any(-1).sum())


def largest_difference(ours: Tensor, reference: Tensor) -> float:
    """Largest absolute difference; infinite if shapes differ or only one of the two is finite."""
    if ours.shape != reference.shape:
        return math.inf
    if ours.numel() == 0:
        return 0.0
    difference = (ours.double() - reference.double()).abs()
    # Equal infinities have no difference, which would be NaN.
    difference[ours == reference] = 0.0
    largest = float(difference.max())
    return math.inf if math.isnan(largest) else largest


def magnitude(reference: Tensor) -> float:
    """The scale of rounding errors in a tensor: its largest absolute element, but at least 1."""
    return max(1.0, float(reference.abs().max())) if reference.numel() else 1.0


def digest(tensors: Tensors) -> str:
    """SHA-256 of all tensors and their names."""
    result = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        result.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        result.update(_bytes(tensor).numpy().tobytes())
    return result.hexdigest()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
