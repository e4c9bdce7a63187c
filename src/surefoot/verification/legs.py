"""A leg: one rollout and the update that follows it, with everything worth comparing kept."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_learner, build_trainer
from surefoot.data.records import Knobs, Learned, Rollout, Targets
from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.protocol import SUCCESS_RATE, VecEnv
from surefoot.learning.learner import Learner
from surefoot.learning.native_learner import NativeLearner
from surefoot.learning.terms import Objective
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.rows import Rows
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import Config
from surefoot.settings.layers import rebuilt
from surefoot.storage.state import copied as copied_state
from surefoot.verification.nudges import nudge_weights, nudged_targets
from surefoot.verification.recorded import RecordedPolicy, ToEnv
from surefoot.verification.recording import Step, flat_moments, flat_states, flat_weights, labeled, numbered, recording

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
    moments: dict[str, Tensor]
    """Adam's, afterwards, each as one vector."""


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
    """As training does it; recorded if the learner is PyTorch's."""


class Traveler:
    """Goes through a trainer's iterations, leg by leg; a readable one does all of it without the core."""

    def __init__(self, config: Config, env: VecEnv, policy: Policy, is_readable: bool = False) -> None:
        self._is_readable = is_readable
        self.trainer = build_trainer(readable(config) if is_readable else config, env, policy)
        self.learner, self._collector = self.trainer.learner, self.trainer.collector
        if is_readable:  # also of native envs
            self._collector = stepwise(config, self._collector.rows, policy)

    def go(self) -> Leg:
        """One leg with the current policy."""
        return self._iterate(self._collected)

    def follow(self, leg: Leg, to_env: ToEnv) -> Leg:
        """One leg from the same start, with another traveler's actions; `to_env` maps actions to the env's range."""
        self._start_as(leg)
        actions = leg.tensors["action"]
        return self._iterate(lambda policy: self._collected(RecordedPolicy(policy, actions, to_env)))

    def learn_from(self, leg: Leg) -> Leg:
        """The update of another traveler's leg, from the same start and rollout."""
        self._start_as(leg)
        return self._iterate(lambda policy: _Collected(leg.first_step, leg.tensors, leg.rollout))

    def _start_as(self, leg: Leg) -> None:
        """With another traveler's weights and moments of Adam: else differences would grow from leg to leg."""
        self.trainer.policy.load_state_dict(leg.policy.state_dict())
        self.learner.gradient.load_state(leg.before["gradient"])

    def _collected(self, acting: Policy) -> "_Collected":
        rows = self._collector.rows
        rollout = labeled(copied(self._collector.collect(acting)), self.learner.objective, self.trainer.policy)
        memory = {f"{STATE} {index}, carried": tensor.clone() for index, tensor in enumerate(rows.memory)}
        return _Collected(rows.first_step, tensors_of(rows.buffer) | memory, rollout)

    def _iterate(self, collect: Callable[[Policy], "_Collected"]) -> Leg:
        """An iteration of the trainer, whose collector and learner keep what they do."""
        witness = _Witness(self.learner, collect, self._collector.rows)
        self.trainer.collector, self.trainer.learner = witness, witness  # type: ignore[assignment]
        acted = deepcopy(self.trainer.policy)
        with path(self._is_readable):
            self.trainer.iterate()
        collected, (targets, knobs) = witness.collected, witness.given
        tensors, rollout = collected.tensors, collected.rollout
        return Leg(collected.first_step, acted, tensors, rollout, targets, knobs, witness.before, witness.update)


@dataclass(frozen=True)
class _Collected:
    first_step: int
    tensors: dict[str, Tensor]
    rollout: Rollout


class _Witness:
    """In place of a trainer's collector and learner."""

    collected: _Collected
    given: tuple[Targets, Knobs]
    before: dict[str, Any]
    update: Update

    def __init__(self, learner: Learner, collect: Callable[[Policy], _Collected], rows: Rows) -> None:
        self._learner, self._collect, self.rows, self.objective = learner, collect, rows, learner.objective

    def collect(self, policy: Policy) -> Rollout:
        self.collected = self._collect(policy)
        return self.collected.rollout

    def learn(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        learner, self.given = self._learner, (targets, knobs)
        states = {"gradient": learner.gradient.state(), "objective": learner.objective.state()}
        self.before = copied_state(states | {"update": learner.update})
        self.update = _update(learner, rollout, targets, knobs, not isinstance(learner, NativeLearner))
        return self.update.learned


def stepwise(config: Config, rows: Rows, policy: Policy) -> StepwiseCollector:
    """The readable collector of the rows of another one."""
    return StepwiseCollector(rows.env, policy, config.rollout.num_steps, config.train.seed, rows=rows)


def repeated(leg: Leg, config: Config, is_readable: bool = False, nudge: int | None = None) -> Update:
    """The update of a leg again, recorded, by a new learner; `nudge` is a seed to round weights and targets with."""
    policy, targets = deepcopy(leg.policy), leg.targets
    with path(is_readable):
        learner = build_learner(readable(config) if is_readable else config, policy, Objective.of(config.ppo))
        learner.gradient.load_state(leg.before["gradient"])
        learner.objective.load_state(leg.before["objective"])
        learner.update = leg.before["update"]
        if nudge is not None:
            nudge_weights(policy, nudge)
            targets = nudged_targets(targets, nudge)
        return _update(learner, leg.rollout, targets, leg.knobs, records=True)


def _update(learner: Learner, rollout: Rollout, targets: Targets, knobs: Knobs, records: bool) -> Update:
    recorder: AbstractContextManager[list[Step]] = recording(learner, records) if records else nullcontext([])
    with recorder as steps:
        learned = learner.learn(numbered(rollout), targets, knobs)
    after = {name: value.clone() for name, value in learner.policy.state_dict().items()}
    transforms, moments = flat_states(learner.gradient.transforms), flat_moments(learner.gradient.state())
    return Update(learned, after, flat_weights(learner.policy), steps, transforms, moments)


def readable(config: Config) -> Config:
    """The same settings with the learner in PyTorch."""
    return rebuilt(config, {"train.learner": "torch"})


def path(is_readable: bool) -> AbstractContextManager[None]:
    """Inside, policies learn with torch alone, or on the fast path as training does."""
    return readable_only() if is_readable else nullcontext()


def tensors_of(buffer: RolloutBuffer) -> dict[str, Tensor]:
    """A copy of all tensors of a rollout, by name, without a success that no env declared: native envs have none."""
    fields = [*buffer.tensors.items(), ("last_value", buffer.last_value)]
    if buffer.metric_names == (SUCCESS_RATE,):
        fields = [field for field in fields if field[0] != "metrics"]
    tensors = {f"{name} {key}".strip(): leaf for name, field in fields for key, leaf in tree_items(field)}
    tensors |= {f"{STATE} {index}, kept": tensor for index, tensor in enumerate(buffer.state)}
    return {name: tensor.clone() for name, tensor in tensors.items()}


def copied(rollout: Rollout) -> Rollout:
    """A rollout that the collector's next one does not overwrite."""
    tensors: dict[str, Any] = {
        name: value.clone() for name, value in vars(rollout).items() if isinstance(value, Tensor)
    }
    state = tuple(tensor.clone() for tensor in rollout.state)
    return replace(rollout, **tensors | {"obs": tree_map(torch.clone, rollout.obs), "state": state})
