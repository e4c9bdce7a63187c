"""Schedules move knobs (learning rate, clip range, weights of terms) during a run; one file per schedule (S14)."""

from typing import Any

from surefoot.core.config import Config
from surefoot.core.parts import PartSettings
from surefoot.core.records import Knobs, Learned, Progress
from surefoot.core.registry import Registry


class Schedule:
    """Base of schedules: a knob's value as a function of progress, and of past updates for closed-loop schedules.

    Progress counts completed steps, so the last update never runs at fraction 1.
    """

    def __init__(self, settings: PartSettings, start: float) -> None:
        self.start = start

    def value(self, progress: Progress) -> float:
        """The knob's value for the next update."""
        raise NotImplementedError

    def observe(self, learned: Learned) -> None:
        """React to the results of an update."""

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""


schedules: Registry[Schedule] = Registry("schedule", "surefoot.learning.schedules", base="Schedule")


class Schedules:
    """All knobs at once; those without a schedule keep their configured value."""

    def __init__(self, config: Config) -> None:
        self._start = config.knobs()
        self._kinds = {name: settings.kind for name, settings in config.schedules.items()}
        self._schedules = {
            name: schedules[settings.kind](settings, self._start[name]) for name, settings in config.schedules.items()
        }

    def at(self, progress: Progress) -> Knobs:
        """The knobs for the next update."""
        return Knobs(self._start | {name: schedule.value(progress) for name, schedule in self._schedules.items()})

    def observe(self, learned: Learned) -> None:
        """Tell closed-loop schedules what an update did."""
        for schedule in self._schedules.values():
            schedule.observe(learned)

    def state(self) -> dict[str, Any]:
        """For checkpoints: each schedule's state, with the configured value that it started from."""
        return {
            name: {"kind": self._kinds[name], "start": self._start[name], "state": schedule.state()}
            for name, schedule in self._schedules.items()
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint; a schedule or start value that the user changed since then is not overwritten."""
        for name, schedule in self._schedules.items():
            saved = state.get(name)
            if saved is not None and (saved["kind"], saved["start"]) == (self._kinds[name], self._start[name]):
                schedule.load_state(saved["state"])
