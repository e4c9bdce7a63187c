"""Faults planted in the readable learner, as they would be written: verify names what differs from the native one."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot.data.moments import normalized
from surefoot.data.records import Batch, Knobs, Learned, Rollout, State, Targets
from surefoot.learning import adam
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import surrogate
from surefoot.native import core
from surefoot.native.kernels import kernels
from surefoot.policies import actor_critic as policies
from surefoot.policies.critics import scalar
from surefoot.policies.distributions.categorical import Categorical, CategoricalHead, masked_log_softmax
from surefoot.policies.distributions.gaussian import Gaussian
from surefoot.policies.distributions.tanh_gaussian import TanhGaussian
from surefoot.rollout.minibatches import FlatSamples
from surefoot.rollout.samples import samples_of
from surefoot.settings.layers import build_config
from surefoot.verification import Report, verify
from tests.verification.sizes import less, only

SMALL = {"policy.hidden": [16, 16], "normalize.obs": True, "ppo.entropy_coef": 0.01}
PENDULUM = SMALL | {"env.id": "Pendulum-v1", "ppo.advantage_norm": "rollout"}
TANH = PENDULUM | {"policy.distribution": "tanh_gaussian"}
CLIPPED_VALUE = PENDULUM | {"ppo.clip_value": 0.2, "normalize.returns": True}
LATER_STATISTICS = CLIPPED_VALUE | {"normalize.return_stats": "previous", "optimizer.algorithm": "adamw"}
PIECES = PENDULUM | {"ppo.micro_batch_size": 16, "ppo.max_grad_norm": 0.1}
MASKED = SMALL | {"env.id": "Probe-v0"}
RECURRENT = SMALL | {"env.id": "CartPoleNoVel-v1", "policy.memory": "lstm", "rollout.sequence_length": 8}

FIRST, CLIPPED = "first minibatch", "first minibatch, clipped"


@pytest.fixture(autouse=True)
def _less(monkeypatch: pytest.MonkeyPatch) -> None:
    less(monkeypatch, rows=8)


def found(settings: dict[str, Any]) -> Report:
    with only("compare_first_step"):
        report = verify(build_config(settings))
    (learner,) = (part.note for part in report.components if part.name == "learner")
    assert (report.path, learner) == ("native", f"native, {core().instructions()}")
    return report


def rows(report: Report, name: str) -> set[str]:
    """The comparisons of a component that differ."""
    return {part.compared for part in report.components if part.name == name and part.verdict == "DIFFERS"}


def losses(report: Report, when: str) -> set[str]:
    """The losses that differ."""
    return {row.removesuffix(f", {when}") for row in rows(report, "losses") if row.endswith(f", {when}")}


@pytest.mark.parametrize("settings", [TANH, CLIPPED_VALUE, LATER_STATISTICS, PIECES, MASKED, RECURRENT])
def test_without_a_fault_all_is_equal(settings: dict[str, Any]) -> None:
    report = found(settings)
    assert report.ok, [part for part in report.components if part.verdict == "DIFFERS"]


def test_clip_on_the_wrong_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
        ratio = log_ratio.exp()
        return -torch.maximum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()

    monkeypatch.setattr(surrogate, "clipped_surrogate", wrong)
    report = found(PENDULUM)
    assert losses(report, CLIPPED) - {"grad_norm"} == {"surrogate loss"}
    assert rows(report, "gradients") == {CLIPPED}


def test_missing_log_determinant_of_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TanhGaussian, "log_prob", Gaussian.log_prob)
    report = found(TANH)
    assert rows(report, "policy outputs") == {"log-probs"}
    assert "log-probs" in report.differing
    assert not {"values", "actions", "noise", "GAE"} & set(report.differing)


def test_value_clip_with_the_smaller_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def smaller(prediction: Tensor, old: Tensor, target: Tensor, clip: float) -> Tensor:
        clipped = old + (prediction - old).clamp(-clip, clip)
        return torch.minimum((prediction - target).square(), (clipped - target).square()).mean()

    monkeypatch.setattr(scalar, "clipped_value_loss", smaller)
    report = found(CLIPPED_VALUE)
    assert losses(report, CLIPPED) - {"grad_norm"} == {"value loss"}
    assert rows(report, "gradients") == {CLIPPED}


def test_advantages_normalized_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Learner._step

    def twice(self: Learner, minibatch: Batch, knobs: Knobs) -> Any:
        return step(self, replace(minibatch, advantage=normalized(minibatch.advantage)), knobs)

    monkeypatch.setattr(Learner, "_step", twice)
    report = found(PENDULUM)
    assert "surrogate loss" in losses(report, "update")
    assert "after the first step" in rows(report, "weights")
    assert not {"GAE", "optimizer"} & set(report.differing)


def adam_with(inside: float, outside: float, corrects: bool) -> Callable[..., None]:
    """Adam with shares of epsilon inside and outside of the root, with or without bias correction."""

    def step(weights: Any, gradients: Any, means: Any, squares: Any, _: Any, counts: Any, **by: Any) -> None:
        (weight,), (gradient,), (mean,), (square,), (count,) = weights, gradients, means, squares, counts
        count += 1
        mean.lerp_(gradient, 1 - by["beta1"])
        square.mul_(by["beta2"]).addcmul_(gradient, gradient, value=1 - by["beta2"])
        bias = [1 - by[beta] ** float(count) if corrects else 1.0 for beta in ("beta1", "beta2")]
        root = (square / bias[1] + inside * by["eps"]).sqrt() + outside * by["eps"]
        weight.sub_(by["lr"] * (mean / bias[0]) / root)

    return step


def test_adam_as_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam, "adam", adam_with(inside=0, outside=1, corrects=True))
    assert found(PENDULUM).ok


@pytest.mark.parametrize("epsilon", [1e-8, 1e-5])
def test_epsilon_inside_the_root_of_adam(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam, "adam", adam_with(inside=1, outside=0, corrects=True))
    assert_only_the_optimizer(found(PENDULUM | {"optimizer.adam_eps": epsilon}))


def test_missing_bias_correction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adam, "adam", adam_with(inside=0, outside=1, corrects=False))
    assert_only_the_optimizer(found(PENDULUM))


def assert_only_the_optimizer(report: Report) -> None:
    assert "first step, of the same gradients" in rows(report, "optimizer")
    assert not losses(report, FIRST) | losses(report, CLIPPED) | rows(report, "gradients")


def test_gradient_clipped_before_the_sum_of_micro_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(self: GradientStep, loss: Tensor, share: float = 1.0) -> None:
        pieces = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        flat = torch.cat([piece.flatten() for piece in pieces])
        flat *= min(1.0, 0.1 / float(flat.norm()))
        self._gradient.copy_(share * flat + (self._gradient if self._is_begun else 0))
        self._is_begun = True

    monkeypatch.setattr(GradientStep, "add", early)
    report = found(PIECES)
    assert rows(report, "gradients") == {FIRST, CLIPPED}
    assert losses(report, FIRST) == {"grad_norm"}


@pytest.fixture
def late_resets(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Recurrent states that are reset one step late, in rollouts or in sequences."""
    forgotten, before, chosen = policies._forgotten, {}, {"learning": False}

    def late(state: State, episode_start: Tensor) -> State:
        if torch.is_grad_enabled() != chosen["learning"]:
            return forgotten(state, episode_start)
        if chosen["learning"]:
            return state  # a sequence ends with its episode, so its first step is the only one that could reset it
        starts = before.get(len(episode_start), torch.zeros_like(episode_start))
        before[len(episode_start)] = episode_start.clone()
        return forgotten(state, starts)

    monkeypatch.setattr(policies, "_forgotten", late)
    return chosen


def test_recurrent_state_reset_one_step_late(late_resets: dict[str, bool]) -> None:
    report = found(RECURRENT)
    assert {"memory", "values", "log-probs"} <= set(report.differing)
    assert not {"env dynamics", "flags", "noise"} & set(report.differing)


def test_recurrent_state_of_sequences_reset_too_late(late_resets: dict[str, bool]) -> None:
    late_resets["learning"] = True
    report = found(RECURRENT)
    assert {FIRST, CLIPPED} <= rows(report, "gradients")
    assert not {"memory", "values", "log-probs", "optimizer"} & set(report.differing)


def test_entropy_of_the_unmasked_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Unmasked(Categorical):
        everything: Categorical

        def entropy(self) -> Tensor:
            return self.everything.entropy()

    def forward(self: CategoricalHead, latent: Tensor, action_mask: Tensor | None = None) -> Categorical:
        logits = self.logits(latent)
        return Unmasked(masked_log_softmax(logits, action_mask), Categorical(masked_log_softmax(logits, None)))

    monkeypatch.setattr(CategoricalHead, "forward", forward)
    report = found(MASKED)
    assert losses(report, FIRST) - {"grad_norm"} == {"entropy loss"}
    assert rows(report, "gradients") == {FIRST, CLIPPED}
    assert not {"log-probs", "policy outputs", "actions"} & set(report.differing)


def test_minibatches_of_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    minibatches = FlatSamples.minibatches

    def halves(self: FlatSamples, size: int, order: Tensor | None = None) -> Any:
        return minibatches(self, size if kernels() is not None or len(self.batch) <= size else size // 2, order)

    monkeypatch.setattr(FlatSamples, "minibatches", halves)
    assert rows(found(PENDULUM), "weights") == {"number of steps"}


def test_statistics_moved_before_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Learner.learn

    def early(self: Learner, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        if type(self) is not Learner:
            return learn(self, rollout, targets, knobs)
        batch, absorb = samples_of(rollout, targets, self._ppo).batch, self.policy.absorb
        absorb(batch.obs, rollout.obs_moments)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(self.policy), "absorb", lambda *_: None)
            return learn(self, rollout, targets, knobs)

    monkeypatch.setattr(Learner, "learn", early)
    report = found(PENDULUM)
    during = "moments of observations, during the update"
    assert rows(report, "normalizer statistics") == {during, f"{during}, against numpy"}
    assert "approx_kl" in losses(report, "update")
    assert not {"gradients", "optimizer", "GAE"} & set(report.differing)
