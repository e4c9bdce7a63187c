"""A hook that makes the environments harder, by a different amount in every row."""

import numpy as np
from pydantic import Field

from surefoot import Hook, PartSettings


class Curriculum(Hook):
    """Raises the level when enough recent episodes succeed; rows get values from 0 to the level."""

    class Settings(PartSettings):
        """Settings under `hooks.<name>`."""

        parameter: str = Field(description="parameter of the environments to set")
        metric: str = Field("is_success", description="metric of the environments to watch")
        threshold: float = Field(0.7, description="mean of the metric at which the level rises")
        step: float = Field(0.01, gt=0, description="how much the level rises")

    def __init__(self, settings):
        super().__init__(settings)
        self.settings, self.level = settings, 0.0

    def before_rollout(self):
        values = np.linspace(0.0, self.level, self.run.envs.num_rows)
        self.run.envs.set_parameters({self.settings.parameter: values})

    def after_iteration(self, report):
        values = [episode.metrics[self.settings.metric] for episode in report.stats.recent]
        if values and np.nanmean(values) >= self.settings.threshold:
            self.level += self.settings.step
        report.metrics["curriculum/level"] = self.level

    def state(self):
        return {"level": self.level}

    def load_state(self, state):
        self.level = state["level"]
