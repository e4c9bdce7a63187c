"""A leg: one rollout and the update that follows, with all that can be compared kept."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_trainer
from surefoot.core.config import Config
from surefoot.core.records import Knobs, Learned, Rollout, Targets
from surefoot.core.tree import tree_items, tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.learning.terms import Losses
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.samples import samples_of
from surefoot.verification.recorded import RecordedPolicy, ToEnv

STATE = "state"
"""How the names of what is remembered begin."""


@dataclass(frozen=True)
class Leg:
    """Everything `[T, N, ...]`; `memory` has what follows the last step too, where there is such a thing."""

    first_step: int
    policy: Policy
    """A copy, as it was when it acted."""
    memory: dict[str, Tensor]
    rollout: Rollout
    targets: Targets
    losses: Losses
    gradient: Tensor
    readable_gradient: Tensor
    """By torch alone, without the core's kernels."""
    learned: Learned
    after: dict[str, Tensor]
    """The policy's weights and statistics after the update."""


class Traveler:
    """Goes leg by leg: collects, scores, learns."""

    def __init__(self, config: Config, env: VecEnv, policy: Policy) -> None:
        self._ppo = config.ppo
        self.trainer = build_trainer(config, env, policy)

    def go(self) -> Leg:
        """One leg with the policy as it is."""
        return self._go(self.trainer.policy)

    def follow(self, leg: Leg, to_env: ToEnv) -> Leg:
        """One leg with the weights of another traveler's and its actions, which `to_env` brings to the env's range."""
        policy = self.trainer.policy
        policy.load_state_dict(leg.policy.state_dict())
        return self._go(RecordedPolicy(policy, leg.memory["action"], to_env))

    def _go(self, acting: Policy) -> Leg:
        trainer, rows = self.trainer, self.trainer.collector.rows
        acted = deepcopy(trainer.policy)
        knobs = trainer.schedules.at(trainer.progress)
        rollout = copied(trainer.collector.collect(acting))
        memory = memory_of(rows.buffer) | {
            f"{STATE} {part}, carried": tensor.clone() for part, tensor in enumerate(rows.memory)
        }
        targets = trainer.scorer.score(rollout, trainer.policy.critic)
        losses, gradient = self._first_losses(rollout, targets, knobs)
        with readable_only():
            _, readable_gradient = self._first_losses(rollout, targets, knobs)
        learned = trainer.learner.learn(rollout, targets, knobs)
        trainer.schedules.observe(learned)
        trainer.progress = trainer.progress.advance(rollout.num_steps)
        after = {name: value.clone() for name, value in trainer.policy.state_dict().items()}
        return Leg(
            rows.first_step, acted, memory, rollout, targets, losses, gradient, readable_gradient, learned, after
        )

    def _first_losses(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> tuple[Losses, Tensor]:
        """Losses and gradient over the whole rollout, before anything is learned from it."""
        policy, samples = self.trainer.policy, samples_of(rollout, targets, self._ppo)
        batch = next(samples.minibatches(len(samples.batch)))
        losses = self.trainer.learner.objective(policy, batch, knobs)
        parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
        pieces = torch.autograd.grad(losses.total, parameters, materialize_grads=True)
        return losses, torch.cat([piece.reshape(-1) for piece in pieces])


def memory_of(buffer: RolloutBuffer) -> dict[str, Tensor]:
    """A copy of all tensors of a rollout, by name."""
    fields = (*buffer.tensors.items(), ("last_value", buffer.last_value))
    tensors = {f"{name} {key}".strip(): leaf for name, field in fields for key, leaf in tree_items(field)}
    tensors |= {f"{STATE} {part}, kept": tensor for part, tensor in enumerate(buffer.state)}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def copied(rollout: Rollout) -> Rollout:
    """With memory of its own: the collector writes over the rollout it gave."""
    tensors: dict[str, Any] = {
        name: value.clone() for name, value in vars(rollout).items() if isinstance(value, Tensor)
    }
    state = tuple(part.clone() for part in rollout.state)
    return replace(rollout, **tensors | {"obs": tree_map(torch.clone, rollout.obs), "state": state})
