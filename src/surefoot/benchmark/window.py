"""One timed window of whole iterations."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """Steps are executed steps, without auto-reset steps and dead agents."""

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
        """Steps per second of the whole iteration."""
        return self.steps / self.total_s

    @property
    def rollout_steps_per_s(self) -> float:
        """Steps per second of the rollout."""
        return self.steps / self.rollout_s

    @property
    def rollout_ms(self) -> float:
        """Milliseconds per rollout."""
        return 1000 * self.rollout_s / self.iterations

    @property
    def learn_ms(self) -> float:
        """Milliseconds of learning per iteration."""
        return 1000 * self.learn_s / self.iterations

    @property
    def step_us(self) -> float:
        """Cost of an env step while collecting, in microseconds of wall-clock time."""
        return 1e6 * self.rollout_s / self.steps
