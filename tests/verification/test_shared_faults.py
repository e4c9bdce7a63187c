"""Faults planted in Python code that both paths share: only the plain numpy of verify can find them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from surefoot.data import moments
from surefoot.data.records import Batch, Progress, Rollout
from surefoot.learning import learner, scorer, watch
from surefoot.learning.adam import Adam
from surefoot.learning.estimators.gae import GAE
from surefoot.learning.learner import Learner
from surefoot.learning.reward_scaler import RewardScaler
from surefoot.learning.schedules import Schedules
from surefoot.learning.terms.entropy import Entropy
from surefoot.philox import permutations
from surefoot.policies.critics.linear import LinearCritic
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.rollout import samples
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.minibatches import FlatSamples
from surefoot.rollout.rows import Rows
from surefoot.settings.layers import build_config
from surefoot.training.trainer import Trainer
from surefoot.verification import Report, verify
from tests.verification.sizes import less, only

Patch = pytest.MonkeyPatch
PENDULUM = {"env.id": "Pendulum-v1", "policy.hidden": [16], "normalize.obs": True, "ppo.entropy_coef": 0.01}
PENDULUM |= {"ppo.advantage_norm": "rollout"}
TORCH = PENDULUM | {"train.learner": "torch"}
"""Both sides learn with the same Python code."""
RETURNS = PENDULUM | {"normalize.returns": True}
REWARDS = PENDULUM | {"normalize.reward": True}
RISK = PENDULUM | {"ppo.estimator": "risk", "ppo.gamma": 1.0}
SCHEDULED = PENDULUM | {"schedules": {"lr": "linear", "clip": "cosine"}}
MINIBATCH = TORCH | {"ppo.advantage_norm": "minibatch", "ppo.micro_batch_size": 16}


@pytest.fixture(autouse=True)
def _only_paths(monkeypatch: Patch) -> Iterator[None]:
    less(monkeypatch, rows=8, limits=(23, 5))
    with only():
        yield


def differences(report: Report) -> set[tuple[str, str]]:
    return {(part.name, part.compared) for part in report.components if part.verdict == "DIFFERS"}


def same_shuffle_in_every_update(patch: Patch) -> None:
    learn = Learner.learn

    def stuck(self: Learner, *given: Any) -> Any:
        self.update = 0
        return learn(self, *given)

    patch.setattr(Learner, "learn", stuck)


def same_shuffle_in_every_epoch(patch: Patch) -> None:
    def once(seed: int, update: int, count: int, size: int) -> Any:
        return np.repeat(permutations(seed, update, 1, size), count, axis=0)

    patch.setattr(learner, "permutations", once)


def samples_drawn_with_replacement(patch: Patch) -> None:
    def drawn(seed: int, update: int, count: int, size: int) -> Any:
        return np.random.default_rng([seed, update]).integers(size, size=(count, size))

    patch.setattr(learner, "permutations", drawn)


def last_minibatch_dropped(patch: Patch) -> None:
    minibatches = FlatSamples.minibatches

    def fewer(self: FlatSamples, size: int, order: Tensor | None = None) -> Iterator[Batch]:
        return iter(list(minibatches(self, size, order))[: -1 if order is not None else None])

    patch.setattr(FlatSamples, "minibatches", fewer)


def observations_absorbed_before_the_update_too(patch: Patch) -> None:
    learn = Learner.learn

    def twice(self: Learner, rollout: Rollout, *given: Any) -> Any:
        self.policy.absorb(rollout.obs[rollout.valid])  # type: ignore[index]
        return learn(self, rollout, *given)

    patch.setattr(Learner, "learn", twice)


def observations_absorbed_between_iterations(patch: Patch) -> None:
    iterate = Trainer.iterate

    def twice(self: Trainer) -> Any:
        report = iterate(self)
        self.policy.absorb(torch.zeros(3, 3))
        return report

    patch.setattr(Trainer, "iterate", twice)


def scale_of_observations_never_refreshed(patch: Patch) -> None:
    patch.setattr(RunningNormalizer, "refresh", lambda self: self.shift.copy_(self.mean))


def biased_std_of_advantages(patch: Patch) -> None:
    def biased(values: Tensor, valid: Tensor) -> Tensor:
        return (values - values[valid].mean()) / values[valid].std(correction=0)

    patch.setattr(scorer, "_normalized", biased)


def advantages_of_the_next_step(patch: Patch) -> None:
    flatten = samples.flatten

    def shifted(*given: Any) -> Batch:
        batch = flatten(*given)
        return replace(batch, advantage=batch.advantage.roll(1))

    patch.setattr(samples, "flatten", shifted)


def log_probs_of_another_row(patch: Patch) -> None:
    flatten = samples.flatten

    def transposed(rollout: Rollout, targets: Any) -> Batch:
        batch = flatten(rollout, targets)
        return replace(batch, returns=targets.returns.T.flatten())

    patch.setattr(samples, "flatten", transposed)


def advantages_normalized_per_micro_batch(patch: Patch) -> None:
    pieces = learner.pieces

    def each(*given: Any) -> Iterator[Batch]:
        return (replace(piece, advantage=moments.normalized(piece.advantage)) for piece in pieces(*given))

    patch.setattr(learner, "pieces", each)


def gamma_and_lambda_swapped(patch: Patch) -> None:
    begin = GAE.__init__

    def swapped(self: GAE, *given: Any) -> None:
        begin(self, *given)
        self.discounts = self.discounts[::-1]

    patch.setattr(GAE, "__init__", swapped)


def rewards_scaled_without_the_past(patch: Patch) -> None:
    scale = RewardScaler.scale

    def forgetful(self: RewardScaler, rollout: Rollout) -> Tensor:
        self.forget_running()
        return scale(self, rollout)

    patch.setattr(RewardScaler, "scale", forgetful)


def returns_normalized_without_popart(patch: Patch) -> None:
    patch.setattr(LinearCritic, "absorb", lambda self, returns: self.returns and self.returns.absorb(returns))


def returns_absorbed_twice(patch: Patch) -> None:
    absorb = LinearCritic.absorb

    def twice(self: LinearCritic, returns: Tensor) -> None:
        absorb(self, returns)
        absorb(self, returns)

    patch.setattr(LinearCritic, "absorb", twice)


def same_noise_in_every_rollout(patch: Patch) -> None:
    begin = Rows.begin

    def repeated(self: Rows) -> None:
        begin(self)
        self.first_step, self.step = 0, len(self.buffer.slots)

    patch.setattr(Rows, "begin", repeated)


def rollouts_that_begin_without_an_episode_start(patch: Patch) -> None:
    carry_over = RolloutBuffer.carry_over

    def forgetful(self: RolloutBuffer) -> None:
        carry_over(self)
        self.episode_start[0] = False

    patch.setattr(RolloutBuffer, "carry_over", forgetful)


def schedules_that_count_iterations(patch: Patch) -> None:
    at = Schedules.at
    patch.setattr(Schedules, "at", lambda self, progress: at(self, Progress(progress.iteration, progress.total)))


def entropy_that_is_punished(patch: Patch) -> None:
    patch.setattr(Entropy, "weight", lambda self, knobs: -knobs.entropy_coef)


def steps_of_twice_the_learning_rate(patch: Patch) -> None:
    step = Adam.step
    patch.setattr(Adam, "step", lambda self, gradient, lr, skipped: step(self, gradient, 2 * lr, skipped))


def variance_explained_by_the_returns(patch: Patch) -> None:
    fit = watch.fit
    patch.setattr(watch, "fit", lambda value, returns: fit(returns, value))


MINIBATCHES, STATISTICS = "minibatches", "normalizer statistics"
SHUFFLED = (MINIBATCHES, "shuffled by seed, update and epoch, against numpy")
ONCE = (MINIBATCHES, "every valid sample once per epoch, against numpy")
FIRST = ("ratio one", "values, at the first gradient step")
FAULTS: list[tuple[Callable[[Patch], None], dict[str, Any], set[tuple[str, str]]]] = [
    (same_shuffle_in_every_update, PENDULUM, {SHUFFLED}),
    (same_shuffle_in_every_epoch, TORCH, {SHUFFLED}),
    (samples_drawn_with_replacement, TORCH, {SHUFFLED, ONCE}),
    (last_minibatch_dropped, TORCH, {ONCE}),
    (
        observations_absorbed_before_the_update_too,
        PENDULUM,
        {(STATISTICS, f"moments of observations, {when} the update, against numpy") for when in ("during", "after")},
    ),
    (
        observations_absorbed_between_iterations,
        PENDULUM,
        {(STATISTICS, "moments of observations, during the update, against numpy")},
    ),
    (
        scale_of_observations_never_refreshed,
        PENDULUM,
        {(STATISTICS, "units of observations, against numpy")},
    ),
    (biased_std_of_advantages, PENDULUM, {("GAE", "normalized advantages, against numpy")}),
    (biased_std_of_advantages, RISK, {("advantages", "normalized, against numpy")}),
    (advantages_of_the_next_step, PENDULUM, {(MINIBATCHES, "advantages, against numpy")}),
    (log_probs_of_another_row, PENDULUM, {(MINIBATCHES, "fields of every sample, against numpy")}),
    (advantages_normalized_per_micro_batch, MINIBATCH, {(MINIBATCHES, "advantages, against numpy")}),
    (gamma_and_lambda_swapped, PENDULUM, {("GAE", "returns, against numpy")}),
    (rewards_scaled_without_the_past, REWARDS, {("GAE", "returns, against numpy")}),
    (returns_normalized_without_popart, RETURNS, {FIRST}),
    (returns_absorbed_twice, RETURNS, {(STATISTICS, "moments of returns, during the update, against numpy")}),
    (
        same_noise_in_every_rollout,
        PENDULUM,
        {("actions", "of the noise of seed, step and row, against numpy")},
    ),
    (rollouts_that_begin_without_an_episode_start, PENDULUM, {("episode starts", "against numpy")}),
    (schedules_that_count_iterations, SCHEDULED, {("knobs", "of every update, against numpy")}),
    (entropy_that_is_punished, PENDULUM, {("losses", "weighted sum of all terms, against numpy")}),
    (steps_of_twice_the_learning_rate, TORCH, {("optimizer", "clipped norm and Adam, against numpy")}),
    (variance_explained_by_the_returns, PENDULUM, {("metrics", "explained variance, against numpy")}),
]


@pytest.mark.parametrize("settings", [PENDULUM, TORCH, RETURNS, REWARDS, SCHEDULED, MINIBATCH])
def test_without_a_fault_all_is_equal(settings: dict[str, Any]) -> None:
    assert not differences(verify(build_config(settings)))


@pytest.mark.parametrize(("plant", "settings", "rows"), FAULTS, ids=[plant.__name__ for plant, *_ in FAULTS])
def test_fault_that_both_paths_share(
    plant: Callable[[Patch], None], settings: dict[str, Any], rows: set[tuple[str, str]], monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    found = differences(verify(build_config(settings)))
    assert rows <= found
    between_paths = [row for row in found if not row[1].endswith(("against numpy", "at the first gradient step"))]
    assert not between_paths, "the two paths agree with each other"
