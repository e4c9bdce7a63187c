"""A categorical distribution that keeps a minimum probability for every allowed action."""

import torch
from pydantic import Field
from torch import nn

from surefoot import Distribution, DistributionHead, PartSettings, SurefootError


class EpsilonCategorical(Distribution):
    """A batch of probabilities `[B, num_actions]`."""

    def __init__(self, probs):
        self.probs = probs

    def sample(self, noise):
        cumulative = self.probs.cumsum(-1)
        return (cumulative <= noise * cumulative[..., -1:]).sum(-1)

    def mode(self):
        return self.probs.argmax(-1)

    def log_prob(self, action):
        return self.probs.gather(-1, action.unsqueeze(-1)).squeeze(-1).log()

    def entropy(self):
        return torch.special.entr(self.probs).sum(-1)


class EpsilonCategoricalHead(DistributionHead):
    """(1 - epsilon) * softmax(logits) + epsilon * uniform."""

    class Settings(PartSettings):
        """Settings under `policy.distribution`."""

        epsilon: float = Field(0.1, ge=0, lt=1, description="share of the uniform distribution")

    noise_size = 1  # uniform numbers in [0, 1) that one sample needs
    action_shape = ()
    action_dtype = torch.int64

    def __init__(self, latent_size, spec, config):
        super().__init__(latent_size, spec, config)
        if spec.kind != "discrete":
            raise SurefootError(
                f"EpsilonCategoricalHead needs a Discrete action space, not {spec.kind}"
            )
        self.epsilon, self.start = config.distribution.epsilon, spec.start[0]
        self.logits = nn.Linear(latent_size, spec.sizes[0])

    def forward(self, latent, action_mask=None):
        logits = self.logits(latent)
        allowed = torch.ones_like(logits) if action_mask is None else action_mask.to(logits.dtype)
        probs = logits.masked_fill(allowed == 0, torch.finfo(logits.dtype).min).softmax(-1)
        uniform = allowed / allowed.sum(-1, keepdim=True)
        return EpsilonCategorical((1 - self.epsilon) * probs + self.epsilon * uniform)

    def to_env(self, action):
        return action + self.start
