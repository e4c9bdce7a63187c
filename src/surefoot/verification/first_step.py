"""The losses of a whole rollout and their gradient, before any weight has moved."""

import torch
from torch import Tensor

from surefoot.core.config import PPOConfig
from surefoot.core.records import Batch
from surefoot.learning.terms import Losses, Objective
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import samples_of
from surefoot.rollout.sequences import SequenceSamples
from surefoot.verification.legs import Leg


class FirstStep:
    """The samples of a leg as the learner draws them, in units that stay whole: single samples, or sequences."""

    def __init__(self, leg: Leg, ppo: PPOConfig) -> None:
        self._knobs, self._objective = leg.knobs, Objective.of(ppo)
        self._samples = samples_of(leg.rollout, leg.targets, ppo)
        self._samples.begin_epoch(leg.policy)
        self.num_units = self._samples.num_units

    def losses(self, policy: Policy, batch: Batch) -> Losses:
        """What the learner minimizes and watches."""
        return self._objective(policy, batch, self._knobs)

    def gradient(self, policy: Policy, batch: Batch) -> dict[str, Tensor]:
        """The gradient of the total loss, by the names of the weights."""
        weights = {name: weight for name, weight in policy.named_parameters() if weight.requires_grad}
        pieces = torch.autograd.grad(self.losses(policy, batch).total, list(weights.values()), materialize_grads=True)
        return dict(zip(weights, pieces, strict=True))

    def batch(self, units: Tensor | None = None) -> Batch:
        """All units as one batch, or only those given; a unit given twice counts twice."""
        units = torch.arange(self.num_units) if units is None else units
        (batch,) = self._samples.minibatches(len(self._samples.batch) * max(1, len(units)), units)
        return batch

    def unit_of_samples(self, batch: Batch) -> Tensor:
        """The unit that each sample of the batch of all units belongs to."""
        if batch.batch_sizes is None:
            return torch.arange(len(batch))
        assert isinstance(self._samples, SequenceSamples)
        by_length = self._samples.runs.length.argsort(descending=True, stable=True)
        runs_on = torch.arange(int(batch.batch_sizes[0])) < batch.batch_sizes[:, None]
        return by_length[runs_on.nonzero(as_tuple=True)[1]]
