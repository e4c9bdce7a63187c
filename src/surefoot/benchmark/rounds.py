"""Interleaved measurements: A B C, A B C, ... so that temporary slowdowns of the machine affect all subjects."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any

from surefoot.benchmark.load import Load, OthersClock, loadavg, summarize_load
from surefoot.benchmark.subject import Plan, Window
from surefoot.benchmark.subject_process import SubjectError, SubjectProcess
from surefoot.errors import ConfigError

SHORTEST_WARM_UP_S = 1.0
"""Long enough for RAM samples to cover every phase, and for the CPU to reach its clock speed."""

Say = Callable[[str], None]
_TO = "\N{EN DASH}"


@dataclass(frozen=True)
class Spread:
    """The median of repeats with their range."""

    median: float
    low: float
    high: float

    def with_range(self, form: str = ",.0f") -> str:
        """`median (low to high)`, or just the number if there is only one repeat."""
        if self.low == self.high:
            return format(self.median, form)
        return f"{self.median:{form}} ({self.low:{form}}{_TO}{self.high:{form}})"

    def with_noise(self, form: str = ",.0f") -> str:
        """`median ±3%`, the largest deviation of a repeat from the median, or just the number for one repeat."""
        if self.low == self.high:
            return format(self.median, form)
        distance = max(self.high - self.median, self.median - self.low) / self.median
        return f"{self.median:{form}} ±{distance:.0%}"

    def to_json(self) -> dict[str, Any]:
        """Median, low and high by name."""
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """The spread of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ratios of repeats in the same round, measured close in time, so that slow drift of the machine cancels."""
    return spread([mine / other for mine, other in zip(ours, theirs, strict=True)])


@dataclass(frozen=True)
class Effort:
    """Number and length of the measured windows."""

    repeats: int = 3
    """number of timed windows per subject"""
    seconds: float = 4.0
    """length of a window in seconds, rounded up to whole iterations"""
    warmup: int = 2
    """number of iterations before the first window"""
    iterations: int | None = None
    """number of iterations per window, instead of --seconds"""

    def __post_init__(self) -> None:
        problems = [
            f"--{name}: must be greater than 0 (got {value})"
            for name, value in asdict(self).items()
            if value is not None and value <= 0
        ]
        if problems:
            raise ConfigError(problems)


@dataclass
class Measured:
    """All windows of one subject, or its error."""

    name: str
    windows: list[Window] = field(default_factory=list)
    peak_ram: int | None = None
    error: str | None = None
    engine: str | None = None
    """The engine that was used, if `auto` selected it."""

    @property
    def has_failed(self) -> bool:
        """Whether there are no results."""
        return self.error is not None

    def values(self, what: str) -> list[float]:
        """A number of every window, such as `steps_per_s`."""
        return [getattr(window, what) for window in self.windows]

    def spread(self, what: str) -> Spread:
        """The median and range of a number."""
        return spread(self.values(what))


@dataclass(frozen=True)
class Rounds:
    """Results of measuring several subjects together."""

    subjects: list[Measured]
    order: list[str]
    """The subject of each window, in chronological order."""
    shares: list[float]
    """CPU usage of other processes during each window."""
    loadavg_before: float

    @property
    def load(self) -> Load:
        """CPU usage of other processes."""
        return summarize_load(self.loadavg_before, self.shares)


def measure(plans: Sequence[Plan], effort: Effort, say: Say) -> Rounds:
    """Start and warm up all subjects, then measure them in turns; if one fails, the others continue."""
    before, order, shares = loadavg(), list[str](), list[float]()
    with ExitStack() as stack:
        turns = list[_Turn]()
        for plan in plans:
            turns.append(stack.enter_context(_Turn(plan, effort, say)))
            turns[-1].prepare()
        for repeat in range(effort.repeats):
            for turn in turns:
                if turn.measured.has_failed:
                    continue
                clock = OthersClock(other.process.pid for other in turns)
                turn.take(f"{repeat + 1}/{effort.repeats}")
                shares.append(clock.share())
                order.append(turn.measured.name)
    return Rounds([turn.measured for turn in turns], order, shares, before)


class _Turn:
    """One subject in the rounds."""

    def __init__(self, plan: Plan, effort: Effort, say: Say) -> None:
        self.measured, self._effort, self._say = Measured(plan.name), effort, say
        self.process = SubjectProcess(plan)
        self._iterations = effort.iterations or 1

    def __enter__(self) -> "_Turn":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.close(gently=kind is None)

    def prepare(self) -> None:
        """Build and warm up, then choose the number of iterations per window."""
        try:
            self._say(f"{self.measured.name}: starting")
            self.measured.engine = self.process.build()
            self._warm_up()
        except SubjectError as error:
            self._fail(error)

    def take(self, which: str) -> None:
        """One timed window."""
        try:
            window = self.process.run(self._iterations)
        except SubjectError as error:
            self._fail(error)
            return
        self.measured.windows.append(window)
        self.measured.peak_ram = self.process.ram.peak
        self._say(f"{self.measured.name}: {which} {window.steps_per_s:,.0f} steps/s")

    def _warm_up(self) -> None:
        """Measured in wall-clock time: some subjects time only a part of their work."""
        self.process.warm_up(1)  # the first iteration is not representative
        iterations, taken_s = self._warm_for(max(1, self._effort.warmup - 1))
        missing_s = min(SHORTEST_WARM_UP_S, self._effort.seconds) - taken_s
        if missing_s > 0:
            iterations, taken_s = self._warm_for(math.ceil(missing_s * iterations / taken_s))
        if self._effort.iterations is None:
            self._iterations = math.ceil(self._effort.seconds * iterations / taken_s)

    def _warm_for(self, iterations: int) -> tuple[int, float]:
        began = time.perf_counter()
        self.process.warm_up(iterations)
        return iterations, time.perf_counter() - began

    def _fail(self, error: SubjectError) -> None:
        self.measured.error = str(error)
        self.measured.windows.clear()
        self._say(f"{self.measured.name}: failed: {error}")
