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
from surefoot.core.state import load_states, states
from surefoot.core.tree import tree_items, tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.learning.learner import Learner
from surefoot.native.kernels import readable_only
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.training.parts import KEPT
from surefoot.verification.nudges import nudge_weights, nudged_targets
from surefoot.verification.recorded import RecordedPolicy, ToEnv
from surefoot.verification.recording import Step, recording

STATE = "state"
"""Prefix of the names of recurrent state."""
NUDGED_UPDATES = 1
"""Number of nudged updates of the reference; one suffices, as only norms over all weights are compared."""


@dataclass(frozen=True, eq=False)
class Update:
    """The record of an update."""

    learned: Learned
    after: dict[str, Tensor]
    """The policy's weights and statistics."""
    steps: list[Step]
    """Empty if nothing was recorded."""


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
    optimizer: dict[str, Any]
    """The state of the gradient step before the update."""
    update: Update
    """As training does it; recorded if the learner is the readable one."""
    others: tuple[Update, ...]
    """The same update again: recorded, or with nudged weights and targets if the learner is the readable one."""


class Traveler:
    """Collects, scores and learns, leg by leg; a readable one does all of it without the core.

    `repeats` says whether the updates are repeated for `Leg.others`.
    """

    def __init__(
        self, config: Config, env: VecEnv, policy: Policy, is_readable: bool = False, repeats: bool = False
    ) -> None:
        self._is_readable, self._repeats = is_readable, repeats
        self._config = readable(config) if is_readable else config
        self.trainer = build_trainer(self._config, env, policy)

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
        trainer = self.trainer
        acted, optimizer = deepcopy(trainer.policy), copied_state(trainer.learner.gradient.state())
        knobs = trainer.schedules.at(trainer.progress)
        targets = trainer.scorer.score(rollout, trainer.policy.critic)
        others = self._repeated(rollout, targets, knobs) if self._repeats else ()
        update = self._update(trainer.learner, rollout, targets, knobs, self._is_readable)
        trainer.schedules.observe(update.learned)
        trainer.progress = trainer.progress.advance(rollout.num_steps)
        return Leg(first_step, acted, tensors, rollout, targets, knobs, optimizer, update, others)

    def _repeated(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> tuple[Update, ...]:
        """Other updates from the same state, which is the state afterwards too."""
        trainer = self.trainer
        parts = {name: part for name, part in trainer.parts().items() if name in KEPT}
        before, updates = copied_state(states(parts)), []
        for seed in range(NUDGED_UPDATES if self._is_readable else 1):
            # Another learner, so that recording leaves no trace in the one that is compared.
            learner = build_learner(self._config, trainer.policy, trainer.learner.objective, trainer.learner.gradient)
            learner.update = trainer.learner.update
            if self._is_readable:
                nudge_weights(trainer.policy, seed)
            given = nudged_targets(targets, seed) if self._is_readable else targets
            updates.append(self._update(learner, rollout, given, knobs, records=True))
            load_states(parts, before)
        return tuple(updates)

    def _update(self, learner: Learner, rollout: Rollout, targets: Targets, knobs: Knobs, records: bool) -> Update:
        recorder: AbstractContextManager[list[Step]] = recording(learner) if records else nullcontext([])
        with recorder as steps:
            learned = learner.learn(rollout, targets, knobs)
        after = {name: value.clone() for name, value in learner.policy.state_dict().items()}
        return Update(learned, after, steps)


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
