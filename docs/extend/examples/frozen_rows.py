"""A hook that lets an earlier policy act in some rows; those rows are not learned from."""

from pydantic import Field

from surefoot import Hook, PartSettings


class FrozenRows(Hook):
    """Loads a policy from a checkpoint and assigns it to the last rows."""

    class Settings(PartSettings):
        """Settings under `hooks.<name>`."""

        checkpoint: str = Field(description="a model file, a run directory or zoo:NAME")
        num_rows: int = Field(1, ge=1, description="number of rows, counted from the last one")

    def __init__(self, settings):
        super().__init__(settings)
        self.settings = settings

    def begin(self):
        self.run.actors.add("frozen", self.run.load_policy(self.settings.checkpoint))
        self.run.actors.assign(slice(-self.settings.num_rows, None), "frozen")

    def after_rollout(self, rollout):
        self.share = float((rollout.extras["actor"] > 0).float().mean())

    def after_iteration(self, report):
        report.metrics["frozen_rows/share"] = self.share
