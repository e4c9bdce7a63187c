"""A constant value."""

from surefoot.data.records import Progress
from surefoot.learning.schedules import Schedule, schedules


@schedules.register("constant")
class Constant(Schedule):
    """Always the configured value."""

    def value(self, progress: Progress) -> float:
        return self.start
