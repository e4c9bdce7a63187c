"""A critic with several heads; the spread between them lowers the value."""

import torch
from pydantic import Field
from torch import nn

from surefoot import Critic, PartSettings, SurefootError


class EnsembleCritic(Critic):
    """Predicts `[B, num_members]`; the value is the mean minus `pessimism` standard deviations."""

    class Settings(PartSettings):
        """Settings under `policy.critic`."""

        num_members: int = Field(5, ge=2, description="number of heads")
        pessimism: float = Field(
            0.5, ge=0, description="standard deviations to subtract from the mean"
        )
        scale: float = Field(10.0, gt=0, description="return that a prediction of 1 stands for")

    def __init__(self, latent_size, config, normalize):
        super().__init__(latent_size, config, normalize)
        if normalize.returns:
            raise SurefootError(
                "EnsembleCritic does not normalize returns; set normalize.returns to false"
            )
        self.settings = config.critic
        self.prediction_shape = (self.settings.num_members,)
        self.heads = nn.Linear(latent_size, self.settings.num_members)

    def forward(self, latent):
        return self.heads(latent)

    def decode(self, prediction):
        return prediction * self.settings.scale

    def expected(self, decoded):
        return decoded.mean(-1) - self.settings.pessimism * decoded.std(-1, correction=0)

    def loss(self, prediction, targets):
        returns = targets.returns.unsqueeze(-1) / self.settings.scale
        error = (prediction - returns).square()
        if (
            targets.clip is not None
        ):  # each head stays close to what the same head said during the rollout
            old = targets.old_prediction / self.settings.scale
            clipped = old + (prediction - old).clamp(-targets.clip, targets.clip)
            error = torch.maximum(error, (clipped - returns).square())
        return error.mean()
