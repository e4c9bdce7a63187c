"""A gradient transform that clips the norm relative to the norms of earlier steps."""

import torch
from pydantic import Field

from surefoot import GradientTransform, Knob, PartSettings


class AdaptiveClip(GradientTransform):
    """The limit is `ratio` times an exponential moving average of the norm."""

    class Settings(PartSettings):
        """Settings under `optimizer.transforms.<name>`."""

        ratio: Knob = Field(1.5, description="limit of the norm, relative to its moving average")
        decay: float = Field(0.9, ge=0, lt=1, description="decay of the moving average per step")

    def __init__(self, settings, name, layout):
        super().__init__(settings, name, layout)
        self.decay, self.average, self.limit = settings.decay, torch.zeros(()), torch.zeros(())

    def apply(self, gradient, knobs):
        norm = gradient.norm()
        if not norm.isfinite():  # Surefoot skips this step; keep the average clean
            return gradient
        first = self.average == 0
        self.average = torch.where(first, norm, self.decay * self.average + (1 - self.decay) * norm)
        self.limit = knobs[f"{self.name}.ratio"] * self.average
        return gradient.mul_((self.limit / (norm + 1e-6)).clamp(max=1))

    def metrics(self):
        return {"limit": self.limit}

    def state(self):
        return {"average": self.average, "limit": self.limit}

    def load_state(self, state):
        self.average, self.limit = state["average"], state["limit"]
