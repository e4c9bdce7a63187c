"""A hook that sets what belongs to the agent."""

from typing import Any

import numpy as np

from surefoot import Hook


class Grows(Hook):
    """Adds 1 to the first weight after each iteration."""

    def after_iteration(self, report: Any) -> None:
        envs = self.run.envs
        before = envs.parameter_values.get("weights", envs.parameters["weights"])
        envs.set_parameters({"weights": before + np.array([1.0, 0.0, 0.0, 0.0])})
