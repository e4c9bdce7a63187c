"""Samples at a kink are found, and only those; the reference leg needs no kernel."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.learning import native_learner
from surefoot.native import core
from surefoot.policies.memory import scan
from surefoot.settings.layers import build_config
from surefoot.verification import Report, gradients, verify
from surefoot.verification.gradients import FirstStep, at_a_kink, kink_distances
from surefoot.verification.legs import Traveler
from surefoot.verification.subject import Subject
from tests.verification.sizes import less, only

NUDGE = 1e-6


def kinked(function: Any, values: Tensor) -> list[int]:
    """Indices of the samples at a kink, if rounding moves all of them by NUDGE."""
    there = values + NUDGE
    runs = [kink_distances(lambda each=each: function(each.requires_grad_())) for each in (values, there)]  # type: ignore[misc]
    return at_a_kink(len(values), runs[0], runs[1:]).nonzero().flatten().tolist()


@pytest.mark.parametrize(
    "function",
    [torch.relu, functional.relu, nn.ReLU(), functional.leaky_relu, torch.abs, abs, lambda x: x.clamp(min=0)],
)
def test_a_sum_within_rounding_of_0_is_at_a_kink(function: Any) -> None:
    assert kinked(function, torch.tensor([1.0, 5 * NUDGE, -5 * NUDGE, 0.0, 20 * NUDGE, -1.0])) == [1, 2, 3]


def test_one_unit_at_its_kink_is_enough() -> None:
    assert kinked(torch.relu, torch.tensor([[1.0, 2.0], [1.0, NUDGE], [-NUDGE, 1.0]])) == [1, 2]


def test_a_clamp_has_a_kink_at_each_bound() -> None:
    values = torch.tensor([0.5, 0.0, 1.0, 2.0])
    assert kinked(lambda x: x.clamp(0, 1), values) == [1, 2]
    assert kinked(lambda x: torch.clamp(x, max=2), values) == [3]


@pytest.mark.parametrize("function", [torch.tanh, functional.elu, functional.silu, functional.gelu])
def test_smooth_functions_have_no_kink(function: Any) -> None:
    assert kinked(function, torch.zeros(3)) == []


def test_only_what_has_a_gradient_has_a_kink() -> None:
    assert kink_distances(lambda: torch.relu(torch.zeros(3))) == []


@pytest.fixture
def _less(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    less(monkeypatch, rows=8, steps=64)
    with only("compare_first_step"):
        yield


RELU_HOPPER: dict[str, Any] = {
    "env": {"id": "Hopper-v5"},
    "policy": {
        **{"hidden": [256, 256], "activation": "relu", "orthogonal_init": False},
        "distribution": {"kind": "gaussian", "log_std": -2.0},
    },
    "rollout": {"num_envs": 1, "num_steps": 512},
    "ppo": {
        **{"batch_size": 32, "epochs": 5, "gamma": 0.999, "gae_lambda": 0.99, "clip": 0.2, "entropy_coef": 0.002295},
        **{"value_coef": 0.836, "max_grad_norm": 0.7},
    },
    "optimizer": {"lr": 9.808e-5},
    "normalize": {"obs": True, "reward": True},
}


@pytest.mark.usefixtures("_less")
@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_hopper_is_clean(seed: int) -> None:
    """Some sums of a relu are so near 0 that rounding may move them across; these samples are counted and left out."""
    report = verify(build_config(RELU_HOPPER, {"train.seed": seed}))
    assert report.ok, report.differing
    assert 0 < kinks_of(report) < 50


def kinks_of(report: Report) -> float:
    (part,) = (part for part in report.components if part.compared == "samples at a kink")
    assert part.difference is not None
    return part.difference


@pytest.mark.usefixtures("_less")
def test_too_many_samples_at_a_kink_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradients, "MOST_AT_A_KINK", 0.0)
    report = verify(build_config({"env.id": "Pendulum-v1", "policy.activation": "relu", "policy.hidden": [512, 512]}))
    (part,) = (part for part in report.components if part.verdict == "DIFFERS")
    assert part.compared == "samples at a kink"
    assert part.note.endswith("of 512 samples are left out: rounding decides their slope")


@pytest.mark.usefixtures("_less")
def test_a_kink_leaves_out_its_whole_sequence() -> None:
    settings = {"policy.memory": "gru", "policy.activation": "relu", "policy.hidden": [512, 512]}
    report = verify(build_config({"env.id": "Pendulum-v1"}, settings))
    assert report.ok, report.differing
    (note,) = (part.note for part in report.components if part.compared == "samples at a kink")
    kinked, total, left_out = map(int, re.findall(r"\d+", note))
    assert 0 < kinked < left_out < total == 512


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
def test_only_the_fast_side_uses_the_core(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unused:
        """In place of the core's learner."""

        def __init__(self, *arguments: Any) -> None:
            self.measures = core().Learner(*arguments).measures

        def learn(self, *_: Any) -> Any:
            raise AssertionError("the core's learner")

    def missing(*_: Any) -> Any:
        raise AssertionError("a kernel of the core")

    replaced = SimpleNamespace(Learner=Unused, instructions=core().instructions)
    monkeypatch.setattr(native_learner, "core", lambda: replaced)
    monkeypatch.setattr(scan, "_run", missing)
    subject = Subject(build_config({"env.id": "CartPole-v1", "policy.memory": memory})).sized()
    with subject.opened("local") as env:
        slow = Traveler(subject.config, env, subject.new_policy(env), is_readable=True)
        leg = slow.go()
        slow.follow(leg, leg.policy.head.to_env)
        first = FirstStep(leg, subject.config)
        first.take(first.given, torch.arange(first.num_units), is_readable=True)
        with pytest.raises(AssertionError, match="the core's learner"):
            first.take(first.given, torch.arange(first.num_units), is_readable=False)
        with pytest.raises(AssertionError, match="the core's learner"):
            Traveler(subject.config, env, subject.new_policy(env)).go()


def test_equal_numbers_are_not_at_the_kink_of_a_choice() -> None:
    """PPO's losses compare numbers with the same numbers clamped."""
    others = torch.tensor([0.0, 0.5, 1 + 5 * NUDGE, 2.0])
    values = torch.ones(4)
    assert kinked(lambda x: torch.maximum(x, others), values) == [2]
    assert kinked(lambda x: torch.minimum(x, x.clone()), values) == []
