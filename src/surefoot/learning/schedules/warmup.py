"""A rise from zero, before or during another schedule."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny

from surefoot.data.records import Learned, Progress
from surefoot.learning.schedules import Schedule, schedules
from surefoot.settings.parts import PartOf, PartSettings
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present, load_present

_Then = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.learning.schedules", "constant"))]


@schedules.register("warmup")
class Warmup(Schedule):
    """min(1, fraction / share) times the value of another schedule; zero in the first update."""

    class Settings(PartSettings):
        """The length of the rise, and the schedule that it multiplies."""

        share: float = Field(0.1, gt=0, le=1, description="share of the run during which the value rises from 0")
        then: _Then = Field(PartSettings(kind="constant"), description="schedule that the rise is multiplied by")

    def __init__(self, settings: Settings, start: float) -> None:
        super().__init__(settings, start)
        self._share, self._kind = settings.share, settings.then.kind
        self._then = schedules[self._kind](settings.then, start)

    def value(self, progress: Progress) -> float:
        return min(1.0, progress.fraction / self._share) * self._then.value(progress)

    def observe(self, learned: Learned) -> None:
        self._then.observe(learned)

    def state(self) -> dict[str, Any]:
        return {self._kind: self._then.state()}

    def check_state(self, saved: Saved) -> None:
        check_present({self._kind: self._then}, saved)

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the other schedule, unless it is of a different kind now."""
        load_present({self._kind: self._then}, state)
