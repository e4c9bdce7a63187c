"""A leg: one rollout and the update that follows it, with everything worth comparing kept."""

from contextlib import AbstractContextManager, nullcontext
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
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.verification.recorded import RecordedPolicy, ToEnv

STATE = "state"
"""Prefix of the names of recurrent state."""


@dataclass(frozen=True, eq=False)
class Leg:
    """The record of a leg. `tensors` are the rollout's by name, including the entries after its last step."""

    first_step: int
    policy: Policy
    """A copy of the policy as it acted."""
    tensors: dict[str, Tensor]
    rollout: Rollout
    targets: Targets
    knobs: Knobs
    learned: Learned
    after: dict[str, Tensor]
    """The policy's weights and statistics after the update."""


class Traveler:
    """Collects, scores and learns, leg by leg; a readable one does all of it without the core's kernels."""

    def __init__(self, config: Config, env: VecEnv, policy: Policy, is_readable: bool = False) -> None:
        self._is_readable = is_readable
        self.trainer = build_trainer(config, env, policy)

    def go(self) -> Leg:
        """One leg with the current policy."""
        with path(self._is_readable):
            return self._go(self.trainer.policy)

    def follow(self, leg: Leg, to_env: ToEnv) -> Leg:
        """One leg with the weights and actions of another traveler's leg; `to_env` maps actions to the env's range."""
        policy = self.trainer.policy
        policy.load_state_dict(leg.policy.state_dict())
        with path(self._is_readable):
            return self._go(RecordedPolicy(policy, leg.tensors["action"], to_env))

    def _go(self, acting: Policy) -> Leg:
        trainer, rows = self.trainer, self.trainer.collector.rows
        acted = deepcopy(trainer.policy)
        knobs = trainer.schedules.at(trainer.progress)
        rollout = copied(trainer.collector.collect(acting))
        tensors = tensors_of(rows.buffer) | {
            f"{STATE} {part}, carried": tensor.clone() for part, tensor in enumerate(rows.memory)
        }
        targets = trainer.scorer.score(rollout, trainer.policy.critic)
        learned = trainer.learner.learn(rollout, targets, knobs)
        trainer.schedules.observe(learned)
        trainer.progress = trainer.progress.advance(rollout.num_steps)
        after = {name: value.clone() for name, value in trainer.policy.state_dict().items()}
        return Leg(rows.first_step, acted, tensors, rollout, targets, knobs, learned, after)


def path(is_readable: bool) -> AbstractContextManager[None]:
    """Inside, policies learn with torch alone, or on the fast path as training does."""
    return readable_only() if is_readable else nullcontext()


def tensors_of(buffer: RolloutBuffer) -> dict[str, Tensor]:
    """A copy of all tensors of a rollout, by name."""
    fields = (*buffer.tensors.items(), ("last_value", buffer.last_value))
    tensors = {f"{name} {key}".strip(): leaf for name, field in fields for key, leaf in tree_items(field)}
    tensors |= {f"{STATE} {part}, kept": tensor for part, tensor in enumerate(buffer.state)}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def copied(rollout: Rollout) -> Rollout:
    """A rollout that the collector's next one does not overwrite."""
    tensors: dict[str, Any] = {
        name: value.clone() for name, value in vars(rollout).items() if isinstance(value, Tensor)
    }
    state = tuple(part.clone() for part in rollout.state)
    return replace(rollout, **tensors | {"obs": tree_map(torch.clone, rollout.obs), "state": state})
