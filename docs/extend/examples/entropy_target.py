"""A closed-loop schedule: moves a knob until the policy has the entropy that was asked for."""

from pydantic import Field

from surefoot import PartSettings, Schedule


class EntropyTarget(Schedule):
    """Multiplies the knob by `factor` after an update below the target, else divides it."""

    class Settings(PartSettings):
        """Settings under `schedules.<knob>`."""

        target: float = Field(description="entropy to hold")
        factor: float = Field(1.1, gt=1, description="factor of one change")
        high: float = Field(1.0, gt=0, description="upper limit of the knob")

    def __init__(self, settings, start):
        super().__init__(settings, start)
        self.settings, self.now = settings, start

    def value(self, progress):
        return self.now

    def observe(self, learned):
        if learned.entropy < self.settings.target:
            self.now = min(self.settings.high, self.now * self.settings.factor)
        else:
            self.now = self.now / self.settings.factor

    def state(self):
        return {"now": self.now}

    def load_state(self, state):
        self.now = state["now"]
