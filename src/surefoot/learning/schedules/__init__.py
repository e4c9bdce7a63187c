"""Schedules change knobs (such as the learning rate) during a run; one file per schedule (S14, docs/semantics.md)."""

from collections.abc import Mapping
from typing import Any

from surefoot.data.records import Knobs, Learned, Progress
from surefoot.settings.config import Config
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present, load_present


class Schedule:
    """Base class of schedules: the value of a knob as a function of progress and, if closed-loop, of past updates.

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
    """All knobs; those without a schedule keep their configured value."""

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
        """Pass the results of an update to closed-loop schedules."""
        for schedule in self._schedules.values():
            schedule.observe(learned)

    def state(self) -> dict[str, Any]:
        """For checkpoints: the state of each schedule, with its configured start value."""
        return {
            name: {"kind": self._kinds[name], "start": self._start[name], "state": schedule.state()}
            for name, schedule in self._schedules.items()
        }

    def check_state(self, saved: Saved) -> None:
        """Check the states of the schedules that are the same as when they were saved."""
        for entry in saved.entries().values():
            entry["kind"].text()
            entry["start"].number()
            entry["state"].entries()
        check_present(self._same(saved.value), Saved(_states_in(saved.value), saved.path))

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint, except schedules whose kind or start value has changed."""
        load_present(self._same(state), _states_in(state))

    def _same(self, saved: Mapping[str, Any]) -> dict[str, Schedule]:
        return {
            name: schedule
            for name, schedule in self._schedules.items()
            if name in saved and (saved[name]["kind"], saved[name]["start"]) == (self._kinds[name], self._start[name])
        }


def _states_in(saved: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry["state"] for name, entry in saved.items()}
