"""Scaling gradients by their variance, in PyTorch and in the core."""

import logging
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot import PPO
from surefoot.data.records import Knobs
from surefoot.errors import CheckpointError, CheckpointMismatchError
from surefoot.learning.native_learner import native_samples, plan_transforms
from surefoot.learning.transforms.variance_scaling import VarianceScaling
from surefoot.native.kernels import kernel_threads
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import native_tensors
from surefoot.rollout.samples import samples_of
from surefoot.storage.saved import Saved
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, Side, both, config_of, knobs_of
from tests.learning.test_native_learner import GRU, HERE, TOLERANCE, learn_apart

LAYOUT = {"a": slice(0, 2), "b": slice(2, 5)}
KNOBS = Knobs({"vgs.strength": 0.5})
VGS = {"kind": "variance_scaling", "beta": 0.9, "strength": 0.5, "warmup": 3}
SCALED = {"optimizer.transforms": {"vgs": VGS}}
EVERY_KNOB = Knobs(knobs_of(config_of("torch")), **{"vgs.strength": 0.5})


def made(**settings: Any) -> VarianceScaling:
    return VarianceScaling(VarianceScaling.Settings(**{"warmup": 0, **settings}), "vgs", LAYOUT)


def gradients(count: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    level = torch.tensor([1.0, -2.0, 0.3, 0.01, 5.0])
    return [level + torch.randn(5, generator=generator) for _ in range(count)]


def memory_of(side: Side) -> dict[str, Tensor]:
    return side.gradient.transforms["vgs"].native_memory()


def test_it_is_its_formula():
    scaling, first, second = made(beta=0.9), torch.zeros(5).double(), torch.zeros(5).double()
    for step, gradient in enumerate(gradients(20), start=1):
        scaled = scaling.apply(gradient.clone(), KNOBS)
        first, second = 0.9 * first + 0.1 * gradient, 0.9 * second + 0.1 * gradient.double().square()
        mean, square = (moment / (1 - 0.9**step) for moment in (first, second))
        noise = (square - mean.square()) / (mean.square() + 1e-8)
        expected = (1 / (1 + 0.5 * noise)).clamp(min=0.1)
        torch.testing.assert_close((scaled / gradient).double(), expected, rtol=1e-4, atol=1e-5)
    assert float(scaling.metrics()["mean_scale"]) == pytest.approx(float(expected.mean()), rel=1e-4)
    assert (expected == 0.1).sum() == 2
    assert float(scaling.metrics()["share_at_floor"]) == pytest.approx(0.4)


def test_a_constant_gradient_is_never_scaled():
    scaling, gradient = made(floor=0.0), torch.tensor([0.1, -1e-20, 3e17, 1 / 3, 0.0])
    for _ in range(300):
        assert torch.equal(scaling.apply(gradient.clone(), KNOBS), gradient)
    assert scaling.metrics() == {"mean_scale": 1.0, "share_at_floor": 0.0}


def test_the_warm_up_only_measures():
    warm, cold = made(warmup=4), made()
    for step, gradient in enumerate(gradients(7)):
        scaled, other = (scaling.apply(gradient.clone(), KNOBS) for scaling in (warm, cold))
        assert torch.equal(scaled, gradient) == (step < 4)
    assert torch.equal(scaled, other)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e20])
def test_a_bad_gradient_is_not_remembered(bad: float):
    scaling = made()
    for gradient in gradients(3):
        scaling.apply(gradient, KNOBS)
    before = {name: tensor.clone() for name, tensor in scaling.native_memory().items()}
    gradient = torch.tensor([1.0, bad, 1.0, 1.0, 1.0])
    assert scaling.apply(gradient, KNOBS) is gradient
    assert all(torch.equal(tensor, before[name]) for name, tensor in scaling.native_memory().items())
    assert scaling.metrics() == {"mean_scale": 1.0, "share_at_floor": 0.0}


def test_the_state_is_by_parameter_and_of_this_network():
    scaling, other = made(), made()
    for gradient in gradients(3):
        scaling.apply(gradient, KNOBS)
    state = scaling.state()
    assert {name: tuple(part.shape) for name, part in state["mean"].items()} == {"a": (2,), "b": (3,)}
    other.check_state(Saved(state, "vgs"))
    other.load_state(state)
    again = gradients(4)[-1]
    assert torch.equal(*(one.apply(again.clone(), KNOBS) for one in (scaling, other)))
    wrong = {**state, "mean": {**state["mean"], "b": torch.zeros(4)}}
    with pytest.raises(CheckpointMismatchError, match=r"'vgs' belongs to another network: vgs\.mean\.b has shape"):
        other.check_state(Saved(wrong, "vgs"))
    with pytest.raises(CheckpointMismatchError, match=r"vgs\.variance\.b is missing"):
        other.check_state(Saved({**state, "variance": {"a": torch.zeros(2)}}, "vgs"))
    with pytest.raises(CheckpointError, match=r"vgs\.variance\.a has negative elements"):
        other.check_state(Saved({**state, "variance": {**state["variance"], "a": -torch.ones(2)}}, "vgs"))
    with pytest.raises(CheckpointError, match=r"vgs\.mean\.a contains NaN"):
        other.check_state(Saved({**state, "mean": {**state["mean"], "a": torch.full((2,), math.nan)}}, "vgs"))
    with pytest.raises(CheckpointError, match=r"vgs\.steps must be 0 or more"):
        other.check_state(Saved({**state, "steps": torch.tensor([-1])}, "vgs"))


@pytest.mark.parametrize("settings", [{}, {"policy.memory": GRU}, {"policy.hidden": (130, 64)}], ids=str)
def test_the_core_scales_alike(settings: dict[str, Any]):
    native, readable, *learned = both(SEVEN, THREE_ACTIONS, **SCALED, **settings)
    assert isinstance(plan_transforms(native.gradient), list)
    native.gradient.transform = None
    for _ in range(2):
        assert learn_apart(native, readable, *learned, EVERY_KNOB) < TOLERANCE
    ours, reference = memory_of(native), memory_of(readable)
    assert int(ours["steps"]) == int(reference["steps"]) == native.gradient.count == 12
    for name in ("mean", "variance"):
        torch.testing.assert_close(ours[name], reference[name], rtol=1e-3, atol=1e-6)


def test_the_core_measures_alike():
    native, readable, *learned = both(SEVEN, CHOICES, **SCALED)
    ours, reference = (side.learn(*learned, EVERY_KNOB).metrics for side in (native, readable))
    assert 0 < reference["vgs/share_at_floor"] < reference["vgs/mean_scale"] < 1
    for name in ("vgs/mean_scale", "vgs/share_at_floor", "vgs/strength"):
        assert ours[name] == pytest.approx(reference[name], abs=1e-3)


def test_the_core_gives_the_same_bits_for_any_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        settings = {"policy.hidden": (130, 64), "ppo.batch_size": 72, "train.threads": threads}
        side, _, *learned = both(SEVEN, THREE_ACTIONS, **SCALED, **settings)
        metrics = side.learn(*learned, EVERY_KNOB).metrics
        weights = torch.cat([value.flatten().double() for value in side.weights().values()])
        found.append((weights, *memory_of(side).values(), torch.tensor(metrics["vgs/mean_scale"])))
    for others in found[1:]:
        assert all(torch.equal(one, other) for one, other in zip(found[0], others, strict=True))


@pytest.mark.parametrize("kind", ["native", "torch"])
def test_a_step_that_is_skipped_leaves_the_moments_alone(kind: str):
    native, readable, rollout, targets = both(SEVEN, CHOICES, **SCALED, **{"ppo.batch_size": 144, "ppo.epochs": 1})
    side = native if kind == "native" else readable
    side.learn(rollout, targets, EVERY_KNOB)
    before = {name: tensor.clone() for name, tensor in memory_of(side).items()}
    targets.returns[3, 2] = math.nan
    learned = side.learn(rollout, targets, EVERY_KNOB)
    assert learned.skips == (True,)
    assert all(torch.equal(tensor, before[name]) for name, tensor in memory_of(side).items())
    assert learned.metrics["vgs/mean_scale"] == 1.0


def test_one_transform_that_the_core_does_not_know_takes_all_to_pytorch():
    transforms = {"vgs": VGS, "half": {"kind": f"{HERE}:Half"}}
    native, readable, *learned = both(SEVEN, CHOICES, **{"optimizer.transforms": transforms})
    assert plan_transforms(native.gradient) == NotNative("the gradient transform Half has no native implementation")
    assert learn_apart(native, readable, *learned, EVERY_KNOB) < TOLERANCE
    assert native.gradient.transforms["half"].calls == 6
    assert int(memory_of(native)["steps"]) == 6


def test_a_subclass_may_do_something_else():
    class Mine(VarianceScaling):
        """In other words."""

    native, _, *_learned = both(SEVEN, CHOICES, **SCALED)
    native.gradient.transforms = {"vgs": Mine(VarianceScaling.Settings(), "vgs", LAYOUT)}
    assert plan_transforms(native.gradient) == NotNative("the gradient transform Mine has no native implementation")


def test_the_log_says_who_transforms_gradients(caplog: pytest.LogCaptureFixture):
    for kind in ("variance_scaling", f"{HERE}:Half"):
        with caplog.at_level(logging.INFO, logger="surefoot"):
            small = {"rollout.num_envs": 2, "rollout.num_steps": 8, "ppo.batch_size": 16, "eval_episodes": 0}
            PPO("CartPole-v1", **small, **{"optimizer.transforms": {"own": {"kind": kind}}}).learn(16)
    lines = [line for line in caplog.messages if line.startswith("learning: native")]
    assert ["gradients are transformed in PyTorch (the gradient" in line for line in lines] == [False, True]


def test_the_core_names_what_is_wrong_with_a_transform():
    native, _, *learned = both(SEVEN, CHOICES, **SCALED)
    samples = native_samples(samples_of(*learned, config_of("torch").ppo), native.policy.preprocess)
    (plan,) = plan_transforms(native.gradient)
    memory, tensors = native.gradient.native_memory(), native_tensors(native.policy)
    (own,) = memory["transforms"]

    def refused(message: str, plan: Any = plan, own: Any = own, call: Any = None) -> None:
        settings = native.learner._settings(EVERY_KNOB) | {"num_valid": 144, "transforms": [plan]}
        given = memory | {"transforms": [own] if own else []}
        with pytest.raises((ValueError, TypeError), match=message):
            native.learner._core.learn(samples, settings, tensors, given, kernel_threads(), call)

    refused("'other', which the core does not know", plan | {"kind": "other"})
    refused(r"transforms\[0\]\.odd", plan | {"odd": 1.0})
    refused("mean must have shape", own=own | {"mean": own["mean"][1:].copy()})
    refused("steps is missing", own={name: value for name, value in own.items() if name != "steps"})
    refused("negative number of steps", own=own | {"steps": own["steps"] - 1})
    refused("as many memories as plans", own=None)
    refused("not both", call=lambda: None)
