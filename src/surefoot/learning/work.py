"""How much a minibatch computes, by which threads and devices are chosen."""

from dataclasses import dataclass

from surefoot.policies.policy import Policy
from surefoot.settings.config import PPOConfig


@dataclass(frozen=True)
class Work:
    """Samples that are computed at once, and parameters; a gradient step has about 6 FLOPs per sample and parameter."""

    samples: int
    parameters: int

    @property
    def size(self) -> int:
        """Samples times parameters."""
        return self.samples * self.parameters

    def __str__(self) -> str:
        return f"{self.samples:,} samples x {self.parameters:,} parameters"


def minibatch_work(policy: Policy, ppo: PPOConfig) -> Work:
    """The work of a minibatch, or of a micro-batch if minibatches are split."""
    samples = min(ppo.batch_size, ppo.micro_batch_size or ppo.batch_size)
    return Work(samples, sum(parameter.numel() for parameter in policy.parameters()))
