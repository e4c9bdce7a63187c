"""A hook that sets the parameter of `measured_envs.py`; not there, so that workers need no torch."""

from surefoot import Hook
from surefoot.data.records import IterationReport


class Pushing(Hook):
    """Pushes harder in every iteration, and differently in each row."""

    def before_rollout(self) -> None:
        envs, iteration = self.run.envs, self.run.progress.iteration
        if iteration < 3:  # later iterations rely on what was set before, also after a resume
            envs.set_parameters({"push": [10.0 + iteration + row for row in range(envs.num_rows)]})

    def after_iteration(self, report: IterationReport) -> None:
        report.metrics["push/mean"] = float(self.run.envs.parameter_values["push"].mean())
