"""A leg: one rollout and the update that follows it, with everything worth comparing kept."""

from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_learner, build_trainer
from surefoot.core.config import Config
from surefoot.core.layers import build_config
from surefoot.core.records import Knobs, Learned, Rollout, Targets
from surefoot.core.state import copied as copied_state
from surefoot.core.tree import tree_items, tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.verification.nudges import nudge_weights, nudged_targets
from surefoot.verification.recorded import RecordedPolicy, ToEnv
from surefoot.verification.recording import Step, flat_states, flat_weights, recording

STATE = "state"
"""Prefix of the names of recurrent state."""


@dataclass(frozen=True, eq=False)
class Update:
    """The record of an update."""

    learned: Learned
    after: dict[str, Tensor]
    """The policy's weights and statistics."""
    weights: Tensor
    """The weights that learn, afterwards, in the order of the steps'."""
    steps: list[Step]
    """Empty if nothing was recorded."""
    transforms: dict[str, Tensor]
    """What the gradient transforms remember afterwards, as one vector per entry of their states."""


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
    before: dict[str, Any]
    """The states of the gradient step and the terms before the update, and its number."""
    update: Update
    """As training does it; recorded if the learner is the readable one."""


class Traveler:
    """Collects, scores and learns, leg by leg; a readable one does all of it without the core."""

    def __init__(self, config: Config, env: VecEnv, policy: Policy, is_readable: bool = False) -> None:
        self._is_readable = is_readable
        self.trainer = build_trainer(readable(config) if is_readable else config, env, policy)

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

    def learn_from(self, leg: Leg) -> Leg:
        """The update of another traveler's leg, from the same weights and rollout."""
        self.trainer.policy.load_state_dict(leg.policy.state_dict())
        with path(self._is_readable):
            return self._learn(leg.first_step, leg.tensors, leg.rollout)

    def _go(self, acting: Policy) -> Leg:
        rows = self.trainer.collector.rows
        rollout = copied(self.trainer.collector.collect(acting))
        tensors = tensors_of(rows.buffer) | {
            f"{STATE} {part}, carried": tensor.clone() for part, tensor in enumerate(rows.memory)
        }
        return self._learn(rows.first_step, tensors, rollout)

    def _learn(self, first_step: int, tensors: dict[str, Tensor], rollout: Rollout) -> Leg:
        trainer, learner = self.trainer, self.trainer.learner
        acted, before = deepcopy(trainer.policy), copied_state(_learner_state(learner))
        knobs = trainer.schedules.at(trainer.progress)
        targets = trainer.scorer.score(rollout, trainer.policy.critic)
        update = _update(learner, rollout, targets, knobs, records=self._is_readable)
        trainer.schedules.observe(update.learned)
        trainer.progress = trainer.progress.advance(rollout.num_steps)
        return Leg(first_step, acted, tensors, rollout, targets, knobs, before, update)


def repeated(leg: Leg, config: Config, is_readable: bool = False, nudge: int | None = None) -> Update:
    """The update of a leg again, recorded, by a new learner; `nudge` is a seed to round weights and targets with."""
    policy, targets = deepcopy(leg.policy), leg.targets
    gradient = GradientStep(policy, config.optimizer, config.ppo.max_grad_norm)
    with path(is_readable):
        learner = build_learner(readable(config) if is_readable else config, policy, Objective.of(config.ppo), gradient)
        learner.gradient.load_state(leg.before["gradient"])
        learner.objective.load_state(leg.before["objective"])
        learner.update = leg.before["update"]
        if nudge is not None:
            nudge_weights(policy, nudge)
            targets = nudged_targets(targets, nudge)
        return _update(learner, leg.rollout, targets, leg.knobs, records=True)


def _learner_state(learner: Learner) -> dict[str, Any]:
    return {"gradient": learner.gradient.state(), "objective": learner.objective.state(), "update": learner.update}


def _update(learner: Learner, rollout: Rollout, targets: Targets, knobs: Knobs, records: bool) -> Update:
    recorder: AbstractContextManager[list[Step]] = recording(learner) if records else nullcontext([])
    with recorder as steps:
        learned = learner.learn(rollout, targets, knobs)
    after = {name: value.clone() for name, value in learner.policy.state_dict().items()}
    return Update(learned, after, flat_weights(learner.policy), steps, flat_states(learner.gradient.transforms))


def readable(config: Config) -> Config:
    """The same settings with the learner in PyTorch."""
    return build_config(config.model_dump(mode="json"), {"train.learner": "torch"})


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
