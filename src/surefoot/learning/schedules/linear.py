"""Linear decay to zero at the end of the run."""

from surefoot.data.records import Progress
from surefoot.learning.schedules import Schedule, schedules


@schedules.register("linear")
class Linear(Schedule):
    """start * (1 - fraction)."""

    def value(self, progress: Progress) -> float:
        return self.start * (1 - progress.fraction)
