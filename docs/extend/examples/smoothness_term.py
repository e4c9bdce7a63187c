"""An objective term: nearby observations should lead to similar action probabilities."""

import torch
from pydantic import Field

from surefoot import Knob, PartSettings, Term, TermLoss


class Smoothness(Term):
    """Runs the policy again on noisy observations; penalizes the change of log-probabilities."""

    class Settings(PartSettings):
        """Settings under `ppo.terms.<name>`."""

        weight: Knob = Field(0.1, description="weight of the term")
        noise: float = Field(0.05, gt=0, description="standard deviation of the noise")

    def __init__(self, settings, name, ppo):
        super().__init__(settings, name, ppo)
        self.noise = settings.noise
        self.generator = torch.Generator().manual_seed(
            0
        )  # torch's global generator is not saved in checkpoints

    def loss(self, minibatch):
        obs, *others = (
            minibatch.batch.inputs
        )  # one array here; Dict observations are a dict of arrays
        noisy = obs + self.noise * torch.randn(obs.shape, generator=self.generator)
        clean, again = minibatch.output.distribution, minibatch.policy(noisy, *others).distribution
        change = again.log_prob(minibatch.batch.action) - clean.log_prob(minibatch.batch.action)
        return TermLoss(change.square().mean(), {"max_change": change.abs().max()})

    def state(self):
        return {"generator": self.generator.get_state()}

    def load_state(self, state):
        self.generator.set_state(state["generator"])
