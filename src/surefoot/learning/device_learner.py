"""The learner whose epochs run in PyTorch on another device; the policy that acts stays on the CPU."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch

from surefoot.data.records import Knobs
from surefoot.learning.gradient import GradientStep, unchanged
from surefoot.learning.learner import Learner
from surefoot.learning.mirror import Mirror
from surefoot.learning.terms import Objective
from surefoot.learning.watch import Watch
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import Samples
from surefoot.settings.config import Config


class DeviceLearner(Learner):
    """The same updates as those of `Learner`. Per update, samples and weights go to the device, and weights return.

    Statistics of observations and returns are updated on the CPU, with every bit that they have there. The moments of
    the optimizer stay on the device.
    """

    def __init__(
        self,
        policy: Policy,
        objective: Objective,
        config: Config,
        device: torch.device,
        reduce: Callable[..., None] = unchanged,
    ) -> None:
        self._mirror = Mirror(device)
        with _current(device):
            copy = self._mirror.send(policy)
            gradient = GradientStep(copy, config.optimizer, config.ppo.max_grad_norm, reduce, policy)
        super().__init__(policy, objective, gradient, config)
        self._there = Learner(copy, objective, gradient, config)

    def _run_epochs(self, samples: Samples, knobs: Knobs) -> Watch:
        with _current(self._mirror.device):
            self._there.policy, self._there.update = self._mirror.send(self.policy), self.update
            watch = self._there._run_epochs(samples.moved(self._mirror.move), knobs)
            self._mirror.fetch(self.policy)
            return watch.on_cpu()


def _current(device: torch.device) -> AbstractContextManager[object]:
    """Pinned memory belongs to the current GPU, which is the first one unless told otherwise."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
