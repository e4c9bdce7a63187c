"""An encoder that adds sines and cosines of the observation at several frequencies."""

import torch
from pydantic import Field

from surefoot import Encoder, PartSettings


class FourierEncoder(Encoder):
    """Concatenates x, sin(2^k x) and cos(2^k x) for k = 0, 1, ..."""

    class Settings(PartSettings):
        """Settings under `policy.encoder`."""

        num_frequencies: int = Field(
            2, ge=1, description="number of frequencies, each twice the one before"
        )

    def __init__(self, spec, settings, policy):
        super().__init__(spec, settings, policy)
        self.output_size = spec.size * (1 + 2 * settings.num_frequencies)
        self.register_buffer("frequencies", 2.0 ** torch.arange(settings.num_frequencies))

    def forward(self, obs):
        flat = obs.flatten(1)
        angles = (flat.unsqueeze(-1) * self.frequencies).flatten(1)
        return torch.cat((flat, angles.sin(), angles.cos()), dim=1)
