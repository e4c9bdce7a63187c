"""The core's perceptrons against torch's layers, and who takes them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from surefoot.native import core
from surefoot.native.kernels import kernel_threads, readable_only, set_kernel_threads
from surefoot.policies import perceptron as module_of_perceptrons
from surefoot.policies.networks import ACTIVATIONS, MLP
from surefoot.policies.perceptron import LEARNED


@pytest.fixture(autouse=True)
def no_work_is_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the core gives is looked at in small; who takes it for being faster, by tests of that."""
    monkeypatch.setattr(module_of_perceptrons, "LEAST_WORK", 1)


def mlp(activation: Any, sizes: tuple[int, ...] = (5, 33, 64)) -> MLP:
    torch.manual_seed(1)
    return MLP(sizes[0], sizes[1:], activation)


def outputs_and_gradients(module: MLP, features: Tensor) -> list[Tensor]:
    features = features.clone().requires_grad_()
    output = module(features)
    loss = (output * torch.cos(torch.arange(output.numel())).view_as(output)).sum()
    return [output, *torch.autograd.grad(loss, [features, *module.parameters()])]


def takes_the_core(module: MLP, features: Tensor) -> bool:
    return "CorePerceptron" in type(module(features).grad_fn).__name__


@pytest.mark.parametrize("samples", [30, 64, 300])
@pytest.mark.parametrize("sizes", [(5, 33, 64), (17, 64, 64), (3, 2), (100, 64, 7, 4)], ids=str)
@pytest.mark.parametrize("activation", LEARNED)
def test_the_core_gives_what_torch_gives(activation: Any, sizes: tuple[int, ...], samples: int) -> None:
    module, features = mlp(activation, sizes), torch.randn(samples, sizes[0])
    assert takes_the_core(module, features)
    ours = outputs_and_gradients(module, features)
    with readable_only():
        expected = outputs_and_gradients(module.double(), features.double())
    for one, other in zip(ours, expected, strict=True):
        error = (one.double() - other).abs().max() / other.abs().max().clamp(min=1e-6)
        assert error < 1e-5


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_who_takes_the_core(activation: Any) -> None:
    module, features = mlp(activation), torch.randn(9, 5)
    assert takes_the_core(module, features) == (activation in LEARNED)
    assert not takes_the_core(module, features[:0])
    assert not takes_the_core(mlp(activation, (5, 2048)), features)  # many weights, few samples
    assert not takes_the_core(module, torch.randn(9, 10)[:, ::2])
    assert not takes_the_core(module.double(), features.double())


def test_little_work_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not takes_the_core(mlp("tanh", (17, 64, 64)), torch.randn(64, 17))
    assert takes_the_core(mlp("tanh", (17, 64, 64)), torch.randn(256, 17))


def test_who_only_acts_or_rounds_otherwise_takes_torch() -> None:
    module, features = mlp("tanh"), torch.randn(9, 5)
    with torch.no_grad():
        expected = functional.linear(features, module.layers[0].weight, module.layers[0].bias).tanh()
        expected = functional.linear(expected, module.layers[1].weight, module.layers[1].bias).tanh()
        assert torch.equal(module(features), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(features).dtype == torch.bfloat16
    with readable_only():
        assert not takes_the_core(module, features)
    assert not mlp("tanh").requires_grad_(False)(features).requires_grad


def test_no_layers_change_nothing() -> None:
    features = torch.randn(4, 5, requires_grad=True)
    assert mlp("tanh", (5,))(features) is features


def test_gradients_only_of_what_wants_them() -> None:
    module, features = mlp("tanh"), torch.randn(9, 5, requires_grad=True)
    module.requires_grad_(False)
    (ours,) = torch.autograd.grad(module(features).sum(), features)
    with readable_only():
        (expected,) = torch.autograd.grad(module(features).sum(), features)
    torch.testing.assert_close(ours, expected)


def test_threads_change_nothing() -> None:
    module, features = mlp("tanh", (20, 64, 80)), torch.randn(3000, 20)  # enough work for several
    found: list[list[Tensor]] = []
    try:
        for count in (1, 2, 3):
            set_kernel_threads(count)
            found.append(outputs_and_gradients(module, features))
    finally:
        set_kernel_threads(1)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_gradients_of_many_samples_keep_their_digits() -> None:
    module, features = mlp("tanh", (4, 16)), torch.randn(200_000, 4)
    ours = torch.autograd.grad(module(features).sum(), list(module.parameters()))
    with readable_only():
        exact = module.double()
        expected = torch.autograd.grad(exact(features.double()).sum(), list(exact.parameters()))
    for one, other in zip(ours, expected, strict=True):
        assert (one - other).abs().max() / other.abs().max() < 1e-6


def test_other_shapes_are_torchs() -> None:
    module, features = mlp("tanh"), torch.randn(64, 3, 5)
    assert module(features).shape == (64, 3, 64)
    torch.testing.assert_close(module(features)[:, 1], module(features[:, 1].contiguous()))


@pytest.mark.parametrize("activation", LEARNED)
def test_what_is_no_number_is_noticed(activation: Any) -> None:
    module, features = mlp(activation, (5, 64)), torch.randn(9, 5)
    features[4, 2] = torch.nan
    ours = outputs_and_gradients(module, features)
    with readable_only():
        expected = outputs_and_gradients(module, features)
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def forward(**changes: Any) -> None:
    """3 samples of 4 numbers through layers of 5 and 2."""
    given = {"activation": "tanh", "inputs": zeros(3, 4), "weights": [zeros(5, 4), zeros(2, 5)]}
    given |= {"biases": [zeros(5), zeros(2)], "outputs": [zeros(3, 5), zeros(3, 2)], "threads": kernel_threads()}
    core().perceptron_forward(**given | changes)


def backward(**changes: Any) -> None:
    given = {"activation": "tanh", "inputs": zeros(3, 4), "weights": [zeros(5, 4), zeros(2, 5)]}
    given |= {"outputs": [zeros(3, 5), zeros(3, 2)], "grad_output": zeros(3, 2), "grad_inputs": zeros(3, 4)}
    given |= {
        "grad_weights": [zeros(5, 4), zeros(2, 5)],
        "grad_biases": [zeros(5), zeros(2)],
        "threads": kernel_threads(),
    }
    core().perceptron_backward(**given | changes)


FAULTS = [
    (forward, {"activation": "gelu"}, "has no gradient for 'gelu'"),
    (forward, {"inputs": np.zeros((3, 4))}, "inputs must be a C-contiguous float32 array of 2 dimensions"),
    (forward, {"weights": []}, "at least one layer"),
    (forward, {"weights": [zeros(5, 4), zeros(2, 6)]}, r"weights\[1\] must have shape \[2, 5\], not \[2, 6\]"),
    (forward, {"biases": [zeros(5)]}, "biases must have one array per layer"),
    (forward, {"biases": [zeros(5), zeros(3)]}, r"biases\[1\] must have shape \[2\]"),
    (forward, {"outputs": [zeros(3, 5)]}, "outputs must have one array per layer"),
    (forward, {"outputs": [zeros(3, 5), zeros(2, 2)]}, r"outputs\[1\] must have shape \[3, 2\]"),
    (backward, {"grad_output": zeros(3, 5)}, r"grad_output must have shape \[3, 2\]"),
    (backward, {"grad_inputs": zeros(4, 3)}, r"grad_inputs must have shape \[3, 4\]"),
    (backward, {"grad_weights": [zeros(5, 4)]}, "grad_weights must have one array per layer"),
    (backward, {"grad_weights": [zeros(5, 4), zeros(5, 2)]}, r"grad_weights\[1\] must have shape \[2, 5\]"),
    (backward, {"grad_biases": [zeros(4), zeros(2)]}, r"grad_biases\[0\] must have shape \[5\]"),
]


@pytest.mark.parametrize(("function", "fault", "message"), FAULTS)
def test_the_core_names_what_does_not_fit(function: Any, fault: dict[str, Any], message: str) -> None:
    function()
    with pytest.raises((ValueError, TypeError), match=message):
        function(**fault)
