"""No change."""

from surefoot.core.records import Progress
from surefoot.learning.schedules import Schedule, schedules


@schedules.register("constant")
class Constant(Schedule):
    """The configured value throughout."""

    def value(self, progress: Progress) -> float:
        return self.start
