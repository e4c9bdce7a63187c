"""Learning on another device gives the bits of learning on the CPU, and never mixes two devices in one operation."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot.learning.device_learner import DeviceLearner
from surefoot.native.kernels import readable_only
from surefoot.policies.critics import quantile
from surefoot.rollout.samples import samples_of
from tests.learning.device_cases import CASES, learned, state_of
from tests.second_device import DEVICE, Elsewhere, SecondDevice

CPU = torch.device("cpu")


def leaves(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(state, dict):
        for key, part in state.items():
            yield from leaves(part, f"{path}.{key}")
    else:
        yield path, state


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = dict(leaves(one)), dict(leaves(other))
    assert list(first) == list(second)
    for name, value in first.items():
        is_same = torch.equal(value, second[name]) if isinstance(value, Tensor) else value == second[name]
        assert is_same, name


@pytest.mark.parametrize("name", CASES)
def test_a_copy_learns_what_the_policy_itself_learns(name: str) -> None:
    """Here the copy is on the CPU, too: this tests copies, synchronization and state with the fast kernels."""
    case = CASES[name]
    plain, other = case.learner(), case.learner(CPU)
    assert isinstance(other, DeviceLearner)
    before = {name: value.clone() for name, value in other.policy.named_parameters()}
    assert learned(plain, case, 2) == learned(other, case, 2)
    assert_same(state_of(plain), state_of(other))
    assert any(not torch.equal(value, before[name]) for name, value in other.policy.named_parameters())


@pytest.mark.parametrize("name", CASES)
def test_a_second_device_computes_the_same(name: str) -> None:
    case = CASES[name]
    with readable_only():
        expected = case.learner()
        wanted = learned(expected, case)
        with SecondDevice() as device:
            there = case.learner(DEVICE)
            found = learned(there, case)
            saved = state_of(there)
    assert found == wanted or str(found) == str(wanted)  # NaN where a metric has no value
    assert_same(saved, state_of(expected))
    assert not any(isinstance(value, Elsewhere) for _, value in leaves(saved)), "checkpoints have only CPU tensors"
    assert isinstance(there.gradient.values, Elsewhere)
    assert device.operations > 100, "nothing ran on the second device"


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_on_meta(name: str) -> None:
    """On torch's own meta device, every tensor that is made on the default device is an error."""
    case = CASES[name]
    learner, (rollout, targets) = case.learner(), case.rollout()
    policy = deepcopy(learner.policy).to("meta")
    samples = samples_of(rollout, targets, case.config.ppo).moved(lambda tensor: tensor.to("meta"))
    samples.begin_epoch(policy)
    losses = learner.objective(policy, next(samples.minibatches(48)), case.knobs())
    parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(losses.total, parameters, materialize_grads=True)
    assert [gradient.shape for gradient in gradients] == [parameter.shape for parameter in parameters]
    assert {value.device.type for value in (losses.total, *losses.watched.values(), *gradients)} == {"meta"}


def test_a_tensor_on_the_wrong_device_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = quantile.midpoints
    monkeypatch.setattr(quantile, "midpoints", lambda count, device: right(count))
    with pytest.raises(Exception, match="two devices"), SecondDevice():
        learned(CASES["quantiles"].learner(DEVICE), CASES["quantiles"])


@pytest.mark.parametrize("name", ["transforms", "popart"])
@pytest.mark.parametrize("way", [(None, DEVICE), (DEVICE, None)], ids=["cpu to device", "device to cpu"])
def test_a_run_moves_from_one_device_to_another(name: str, way: tuple[Any, Any]) -> None:
    case = CASES[name]
    with readable_only(), SecondDevice():
        stayed, first, second = case.learner(), *(case.learner(device) for device in way)
        learned(stayed, case, 2)
        learned(first, case)
        saved = state_of(first)
        second.policy.load_state_dict(saved["policy"])
        second.gradient.load_state(saved["gradient"])
        second.objective.load_state(saved["objective"])
        second.update = first.update
        learned(second, case)
        assert_same(state_of(second), state_of(stayed))


def test_a_copy_follows_what_hooks_change() -> None:
    """Weights, statistics, what is frozen, and also plain attributes of the policy."""
    case = CASES["gaussian"]
    plain, other = case.learner(), case.learner(CPU)
    for learner in (plain, other):
        learned(learner, case)
        with torch.no_grad():
            next(learner.policy.parameters()).mul_(0.5)
        learner.policy.head.std_floor = 0.3  # type: ignore[assignment]
    for is_frozen in (True, False):
        weights = [next(learner.policy.parameters()) for learner in (plain, other)]
        before = [weight.detach().clone() for weight in weights]
        for weight in weights:
            weight.requires_grad_(not is_frozen)
        assert learned(plain, case) == learned(other, case)
        assert_same(state_of(plain), state_of(other))
        assert [torch.equal(*pair) for pair in zip(weights, before, strict=True)] == [is_frozen] * 2


def test_mixed_precision_in_a_copy() -> None:
    case = CASES["gaussian"]
    low = type(case)(case.settings | {"policy__precision": "bfloat16"})
    plain, other = low.learner(), low.learner(CPU)
    assert learned(plain, low) == learned(other, low)
    assert learned(low.learner(), low) != learned(case.learner(), case)


def test_an_update_that_fails_leaves_the_policy_as_it_was() -> None:
    case = CASES["gaussian"]
    learner = case.learner(CPU)
    before = state_of(learner)["policy"]

    def fail(*arguments: Any) -> None:
        raise RuntimeError("out of memory")

    learner.gradient.step = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="out of memory"):
        learned(learner, case)
    assert_same(before, state_of(learner)["policy"])
