"""One timed stretch of whole iterations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Steps are those that really happened; rows that only reset and dead agents are none."""

    iterations: int
    steps: int
    rollout_s: float
    learn_s: float

    @property
    def total_s(self) -> float:
        """Both phases."""
        return self.rollout_s + self.learn_s

    @property
    def steps_per_s(self) -> float:
        """End to end."""
        return self.steps / self.total_s

    @property
    def rollout_steps_per_s(self) -> float:
        """While collecting."""
        return self.steps / self.rollout_s

    @property
    def rollout_ms(self) -> float:
        """Of one iteration."""
        return 1000 * self.rollout_s / self.iterations

    @property
    def learn_ms(self) -> float:
        """Of one iteration."""
        return 1000 * self.learn_s / self.iterations

    @property
    def step_us(self) -> float:
        """What a step of one env costs while collecting, in microseconds of wall-clock time."""
        return 1e6 * self.rollout_s / self.steps
