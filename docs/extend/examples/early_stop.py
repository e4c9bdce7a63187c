"""A hook that stops the run when the return has stopped improving."""

from pydantic import Field

from surefoot import Hook, PartSettings


class EarlyStop(Hook):
    """Compares the mean return of the last 100 episodes with its best value so far."""

    class Settings(PartSettings):
        """Settings under `hooks.<name>`."""

        patience: int = Field(
            20, ge=1, description="iterations without improvement before the run stops"
        )
        min_gain: float = Field(
            0.0, ge=0, description="smallest gain that counts as an improvement"
        )

    def __init__(self, settings):
        super().__init__(settings)
        self.settings, self.best, self.waited = settings, None, 0

    def after_iteration(self, report):
        recent = report.stats.recent
        if not recent:  # no episode has ended yet
            return
        mean = sum(episode.total_reward for episode in recent) / len(recent)
        if self.best is None or mean > self.best + self.settings.min_gain:
            self.best, self.waited = mean, 0
        else:
            self.waited += 1
        report.metrics["early_stop/waited"] = float(self.waited)
        if self.waited >= self.settings.patience:
            self.run.stop(
                f"no improvement over a mean return of {self.best:g} for {self.waited} iterations"
            )

    def state(self):
        return {"best": self.best, "waited": self.waited}

    def load_state(self, state):
        self.best, self.waited = state["best"], state["waited"]
