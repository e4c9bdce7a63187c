"""Measuring subjects in turns: A B C, A B C, ... so that what slows the machine for a while slows all of them."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from types import TracebackType

from surefoot.benchmark.load import Load, OthersClock, loadavg, summarize_load
from surefoot.benchmark.recipe import Plan
from surefoot.benchmark.spread import Spread, spread
from surefoot.benchmark.subject_process import SubjectError, SubjectProcess
from surefoot.benchmark.window import Window
from surefoot.core.errors import ConfigError

SHORTEST_WARM_UP_S = 1.0
"""Enough for the RAM samples to meet every phase, and for the processor to reach its speed."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Effort:
    """How long to measure: some windows of whole iterations."""

    repeats: int = 3
    """timed windows of each subject"""
    seconds: float = 4.0
    """length of a window, rounded up to whole iterations"""
    warmup: int = 2
    """iterations before the first window"""
    iterations: int | None = None
    """iterations in a window, instead of --seconds"""

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
    """All windows of one subject, or why there are none."""

    name: str
    windows: list[Window] = field(default_factory=list)
    peak_ram: int | None = None
    error: str | None = None
    engine: str | None = None
    """The one that it really got, where `auto` left the choice."""

    @property
    def has_failed(self) -> bool:
        """Whether there is nothing to show."""
        return self.error is not None

    def values(self, what: str) -> list[float]:
        """A number of every window, such as `steps_per_s`."""
        return [getattr(window, what) for window in self.windows]

    def spread(self, what: str) -> Spread:
        """The median and range of a number."""
        return spread(self.values(what))


@dataclass(frozen=True)
class Rounds:
    """What came of measuring some subjects together."""

    subjects: list[Measured]
    order: list[str]
    """Whose window it was, in order of time."""
    shares: list[float]
    """What others used of the machine during each window."""
    loadavg_before: float

    @property
    def load(self) -> Load:
        """How busy others kept the machine."""
        return summarize_load(self.loadavg_before, self.shares)


def measure(plans: Sequence[Plan], effort: Effort, say: Say) -> Rounds:
    """Start and warm up all, then take turns; one that fails says so and the others go on."""
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
    """One subject's part in the rounds."""

    def __init__(self, plan: Plan, effort: Effort, say: Say) -> None:
        self.measured, self._effort, self._say = Measured(plan.name), effort, say
        self.process = SubjectProcess(plan)
        self._iterations = effort.iterations or 1

    def __enter__(self) -> "_Turn":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.close(gently=kind is None)

    def prepare(self) -> None:
        """Build and warm up, and from that decide how many iterations a window has."""
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
        """Lengths go by the clock on the wall: some subjects time only a part of what they do."""
        self.process.warm_up(1)  # the first one is like no other
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
