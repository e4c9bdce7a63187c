"""Ranges of settings that a population or a sweep tries: `{low, high, scale, integer}` or `{choices}`."""

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from surefoot.settings.parts import Section

Scale = Literal["linear", "log", "one_minus"]
Scalar = float | int | str | bool


class Range(Section):
    """Values of one setting. `one_minus` is a logarithmic scale of 1 - x, for settings such as gamma."""

    low: float | None = Field(None, description="smallest value")
    high: float | None = Field(None, description="largest value")
    scale: Scale = Field("linear", description="linear, log, or one_minus: logarithmic in 1 - x")
    integer: bool = Field(False, description="whole numbers only")
    choices: Annotated[tuple[Scalar, ...], Field(strict=False)] = Field(
        (), description="the values, instead of a range"
    )
    factor: float = Field(1.2, gt=1, description="population: values are multiplied or divided by this factor")
    resample: float = Field(0.25, ge=0, le=1, description="population: probability of a new value from the range")

    @model_validator(mode="after")
    def _is_complete(self) -> "Range":
        if self.choices:
            if self.low is not None or self.high is not None:
                raise ValueError("give either choices or low and high")
            return self
        if self.low is None or self.high is None:
            raise ValueError("give low and high, or choices")
        if not self.low < self.high:
            raise ValueError(f"low must be below high, not {self.low:g} and {self.high:g}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"a logarithmic range needs low above 0, not {self.low:g}")
        if self.scale == "one_minus" and self.high >= 1:
            raise ValueError(f"the scale one_minus needs high below 1, not {self.high:g}")
        return self

    def at(self, share: float) -> Any:
        """The value at a share of the range, from 0 to just below 1."""
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        low, high = self._scaled(self.low), self._scaled(self.high)
        value = self._unscaled(low + share * (high - low))
        return self.clamped(value)

    def share(self, value: Any) -> float:
        """The place of a value, from 0 to 1; choices are evenly spaced."""
        if self.choices:
            return self.choices.index(value) / max(len(self.choices) - 1, 1)
        low, high = self._scaled(self.low), self._scaled(self.high)
        return (self._scaled(value) - low) / (high - low)

    def changed(self, value: Any, grows: bool) -> Any:
        """A value times or divided by the factor; of choices, the next or the previous one.

        On the scale one_minus, 1 - x is divided or multiplied.
        """
        if self.choices:
            place = self.choices.index(value) + (1 if grows else -1)
            return self.choices[min(max(place, 0), len(self.choices) - 1)]
        if self.scale == "one_minus":
            return self.clamped(1 - (1 - value) * (1 / self.factor if grows else self.factor))
        moved = value * self.factor if grows else value / self.factor
        if self.integer and round(moved) == value:  # a small whole number would never change
            moved = value + (1 if grows else -1)
        return self.clamped(moved)

    def clamped(self, value: float) -> float | int:
        """The nearest value of the range."""
        assert self.low is not None
        assert self.high is not None
        inside = min(max(value, self.low), self.high)
        return round(inside) if self.integer else inside

    def _scaled(self, value: float | None) -> float:
        assert value is not None
        return {"linear": value, "log": math.log(max(value, 5e-324)), "one_minus": -math.log(max(1 - value, 5e-324))}[
            self.scale
        ]

    def _unscaled(self, value: float) -> float:
        return {"linear": lambda: value, "log": lambda: math.exp(value), "one_minus": lambda: 1 - math.exp(-value)}[
            self.scale
        ]()
