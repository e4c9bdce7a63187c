"""Formats measurements as table cells and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from surefoot.benchmark.report import MISSING
from surefoot.benchmark.rounds import Measured, Spread

MEGABYTE = 10**6
FAILED = "failed"
NOISE_NOTE = "Medians of the repeats; ± is the largest deviation of a repeat from the median."
RATES = ("steps_per_s", "rollout_steps_per_s", "rollout_ms", "learn_ms", "step_us")


def megabytes(size: int | None) -> str:
    """RAM in megabytes; a dash if the system does not report it."""
    return MISSING if size is None else f"{size / MEGABYTE:,.0f}"


def times(found: Spread | None) -> str:
    """A ratio, or milliseconds, with the range."""
    return MISSING if found is None else found.with_range(decimals(found.median))


def share(ratio: Spread | None) -> str:
    """A ratio as a percentage, with its range."""
    return MISSING if ratio is None else ratio.with_range(".0%" if ratio.median >= 0.1 else ".1%")


def decimals(number: float) -> str:
    """The format that shows about three significant digits."""
    return ".3f" if number < 1 else ".2f" if number < 10 else ".1f" if number < 100 else ",.0f"


def spread_to_json(found: Spread | None) -> dict[str, float] | None:
    """Median, low and high by name, or None."""
    return None if found is None else found.to_json()


def failures(subjects: Sequence[Measured]) -> list[str]:
    """One sentence per failed subject."""
    return [f"{subject.name} failed: {subject.error}" for subject in subjects if subject.has_failed]


def subject_to_json(subject: Measured) -> dict[str, Any]:
    """Medians with ranges, their windows, and errors."""
    if subject.has_failed:
        return {"name": subject.name, "error": subject.error}
    return {
        "name": subject.name,
        "engine": subject.engine,
        **{rate: subject.spread(rate).to_json() for rate in RATES},
        "peak_memory_bytes": subject.peak_ram,
        "windows": [asdict(window) for window in subject.windows],
    }
