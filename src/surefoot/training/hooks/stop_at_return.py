"""Ends a run once the mean return reaches a threshold."""

from typing import Any

from pydantic import Field

from surefoot.data.records import IterationReport
from surefoot.settings.config import Count
from surefoot.settings.parts import PartSettings
from surefoot.storage.saved import Saved
from surefoot.training.hooks import Hook, hooks


@hooks.register("stop_at_return")
class StopAtReturn(Hook):
    """Stops the run when the mean return of recent episodes has reached a threshold for several iterations."""

    class Settings(PartSettings):
        """The threshold, and for how long it must be reached."""

        value: float = Field(description="threshold for the mean return of recent episodes")
        iterations: Count = Field(1, description="number of consecutive iterations at or above the threshold")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._settings, self._streak = settings, 0

    def after_iteration(self, report: IterationReport) -> None:
        recent = report.stats.recent
        mean = sum(episode.total_reward for episode in recent) / len(recent) if recent else float("-inf")
        self._streak = self._streak + 1 if mean >= self._settings.value else 0
        if self._streak >= self._settings.iterations:
            self.run.stop(f"the mean return reached {mean:g}")

    def state(self) -> dict[str, Any]:
        return {"streak": self._streak}

    def check_state(self, saved: Saved) -> None:
        saved["streak"].integer()

    def load_state(self, state: dict[str, Any]) -> None:
        self._streak = state["streak"]
