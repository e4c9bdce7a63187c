"""A hook that trains the network inside Reflex-v0."""

from typing import Any

import torch

from surefoot import Hook

STIFFNESS, DAMPING, RATE = 8.0, 2.0, 0.02


class TeachReflex(Hook):
    """Fits the network to a PD law, a little after each iteration of the policy."""

    def begin(self) -> None:
        if "reflex" not in self.run.envs.parameter_values:  # a new run
            random = torch.Generator().manual_seed(self.run.config.train.seed)
            self.run.envs.set_parameters({"reflex": 0.5 * torch.randn(33, generator=random)})

    def after_iteration(self, report: Any) -> None:
        # Read where the run keeps it, so that a rollback of the policy also rolls this back.
        weights = torch.tensor(self.run.envs.parameter_values["reflex"], requires_grad=True)
        random = torch.Generator().manual_seed(report.progress.iteration)
        felt = 2 * torch.rand(64, 2, generator=random) - 1
        wanted = STIFFNESS * felt[:, 0] - DAMPING * felt[:, 1]
        for _ in range(20):
            first, first_bias, second, second_bias = weights.split([16, 8, 8, 1])
            force = torch.tanh(felt @ first.view(8, 2).T + first_bias) @ second + second_bias
            loss = (force - wanted).square().mean()
            (gradient,) = torch.autograd.grad(loss, weights)
            weights = (weights - RATE * gradient).detach().requires_grad_()
        self.run.envs.set_parameters({"reflex": weights.detach()})
        report.metrics["reflex/loss"] = loss.item()
