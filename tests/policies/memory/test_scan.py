"""The core's recurrent layers against the readable loop, and that against torch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from surefoot.native import core
from surefoot.native.kernels import kernel_threads, readable_only, set_kernel_threads
from surefoot.policies.memory import scan, scan_reference

GATES = {"gru": 3, "lstm": 4}
STATES = {"gru": ["h0"], "lstm": ["h0", "c0"]}
UNEVEN = [5, 5, 3, 1, 1]
SIZES = [[1], [4], [1, 1, 1], [3, 3], UNEVEN]


def inputs(kind: str, hidden: int, sizes: list[int], dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """What a scan takes, in order, made up and wanting gradients; the float32 ones are the float64 ones, rounded."""
    generator = torch.Generator().manual_seed(hidden + len(sizes))
    width, batch_sizes = GATES[kind] * hidden, torch.tensor(sizes)
    shapes: dict[str, tuple[int, ...]] = {"gates_x": (sum(sizes), width), "weight": (width, hidden), "bias": (width,)}
    shapes |= dict.fromkeys(STATES[kind], (sizes[0], hidden))
    made = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name, shape in shapes.items()}
    made["weight"] /= hidden**0.5
    return {name: tensor.to(dtype).requires_grad_() for name, tensor in made.items()} | {"batch_sizes": batch_sizes}


def outputs_and_gradients(function: Callable[..., tuple[Tensor, ...]], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Of a loss to which every output adds in its own way."""
    outputs = function(*given.values())
    loss = torch.stack([(output * torch.cos(torch.arange(output.numel())).view_as(output)).sum() for output in outputs])
    wanted = {name: tensor for name, tensor in given.items() if tensor.requires_grad}
    gradients = torch.autograd.grad(loss.sum(), list(wanted.values()))
    named = {f"output {index}": output for index, output in enumerate(outputs)}
    return named | dict(zip(wanted, gradients, strict=True))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("hidden", [1, 7, 33, 64, 256])
@pytest.mark.parametrize("kind", GATES)
def test_the_core_gives_what_the_loop_gives(kind: str, hidden: int, sizes: list[int]) -> None:
    ours = outputs_and_gradients(getattr(scan, f"{kind}_scan"), inputs(kind, hidden, sizes, torch.float32))
    exact = outputs_and_gradients(getattr(scan_reference, f"{kind}_scan"), inputs(kind, hidden, sizes))
    assert "Core" in type(ours["output 0"].grad_fn).__name__
    for name, expected in exact.items():
        assert ours[name].shape == expected.shape, name
        error = (ours[name].double() - expected).abs().max() / expected.abs().max()
        assert error < 1e-5, f"{name} {error}"


@pytest.mark.parametrize("kind", GATES)
def test_each_output_alone_has_its_gradients(kind: str) -> None:
    """Those of the others arrive as zeros, or as numbers repeated without memory of their own."""
    for index in range(len(STATES[kind]) + 1):
        single, exact = inputs(kind, 7, UNEVEN, torch.float32), inputs(kind, 7, UNEVEN)
        getattr(scan, f"{kind}_scan")(*single.values())[index].sum().backward()
        getattr(scan_reference, f"{kind}_scan")(*exact.values())[index].sum().backward()
        for name in ("gates_x", "weight", "bias", *STATES[kind]):
            ours, expected = single[name].grad, exact[name].grad
            assert ours is not None
            assert expected is not None
            torch.testing.assert_close(ours.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", GATES)
def test_gradients_of_the_loop(kind: str) -> None:
    *given, batch_sizes = inputs(kind, 2, [3, 2, 2]).values()
    function = getattr(scan_reference, f"{kind}_scan")
    assert torch.autograd.gradcheck(lambda *tensors: function(*tensors, batch_sizes), given)


@pytest.mark.parametrize("module", [scan, scan_reference], ids=["core", "loop"])
@pytest.mark.parametrize("kind", GATES)
def test_as_torch_computes_packed_sequences(kind: str, module: Any) -> None:
    torch.manual_seed(0)
    cells = {"gru": nn.GRU, "lstm": nn.LSTM}[kind](6, 33)
    features, batch_sizes = torch.randn(sum(UNEVEN), 6), torch.tensor(UNEVEN)
    states = [torch.randn(UNEVEN[0], 33) for _ in STATES[kind]]
    before = tuple(state[None] for state in states)
    expected, last = cells(PackedSequence(features, batch_sizes), before if kind == "lstm" else before[0])
    weight_ih, weight_hh, bias_ih, bias_hh = cells.all_weights[0]
    gates_x = nn.functional.linear(features, weight_ih, bias_ih)
    found = getattr(module, f"{kind}_scan")(gates_x, weight_hh, bias_hh, *states, batch_sizes)
    parts = [expected.data, *(part[0] for part in (last if kind == "lstm" else [last]))]
    for theirs, ours in zip(parts, found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
        reference = torch.autograd.grad(theirs.square().sum(), cells.parameters(), retain_graph=True)
        gradients = torch.autograd.grad(ours.square().sum(), cells.parameters(), retain_graph=True)
        torch.testing.assert_close(gradients, reference, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", GATES)
def test_threads_change_nothing(kind: str) -> None:
    """Enough work for several, in sequences of several lengths."""
    given = inputs(kind, 128, [40] * 20 + [13] * 10, torch.float32)
    found: list[list[Tensor]] = []
    try:
        for count in (1, 2, 3):
            set_kernel_threads(count)
            outputs = getattr(scan, f"{kind}_scan")(*given.values())
            gradients = torch.autograd.grad(outputs[0].square().sum(), [given["gates_x"], given["h0"]])
            found.append([*outputs, *gradients])
    finally:
        set_kernel_threads(1)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


@pytest.mark.parametrize("kind", GATES)
def test_who_takes_the_core(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    function, run = getattr(scan, f"{kind}_scan"), scan._run

    def counted(name: str, tensors: dict[str, Tensor]) -> None:
        calls.append(name)
        run(name, tensors)

    monkeypatch.setattr(scan, "_run", counted)

    def takes_the_core(given: dict[str, Tensor]) -> bool:
        calls.clear()
        function(*given.values())
        return calls == [f"{kind}_forward"]

    assert takes_the_core(inputs(kind, 4, [3], torch.float32))
    assert not takes_the_core(inputs(kind, 4, UNEVEN))  # float64
    wide = inputs(kind, 4, [3, 3], torch.float32)
    assert not takes_the_core(wide | {"h0": torch.randn(3, 8)[:, ::2]})
    with torch.no_grad():
        assert not takes_the_core(inputs(kind, 4, [3], torch.float32))  # a step of a rollout
        assert takes_the_core(inputs(kind, 4, UNEVEN, torch.float32))


@pytest.mark.parametrize("kind", GATES)
def test_without_a_core_it_is_the_loop(kind: str) -> None:
    given = inputs(kind, 7, UNEVEN, torch.float32)
    with readable_only():
        found = getattr(scan, f"{kind}_scan")(*given.values())
    expected = getattr(scan_reference, f"{kind}_scan")(*given.values())
    assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


def arrays() -> dict[str, Any]:
    """What a forward pass of a GRU takes: 3 samples of 2 sequences, 4 hidden."""
    shapes = {"gates_x": (3, 12), "weight": (12, 4), "bias": (12,), "h0": (2, 4)}
    shapes |= {"gates": (3, 16), "h": (3, 4), "h_last": (2, 4)}
    return {name: np.zeros(shape, np.float32) for name, shape in shapes.items()} | {"batch_sizes": np.array([2, 1])}


FAULTS = [
    ({"gates_x": np.zeros((3, 11), np.float32)}, ValueError, r"gates_x must have shape \[3, 12\], not \[3, 11\]"),
    ({"weight": np.zeros((4, 12), np.float32)}, ValueError, r"weight must have shape \[12, 4\]"),
    ({"bias": np.zeros(12)}, TypeError, r"bias must be a C-contiguous float32 array of shape \[12\]"),
    ({"h": np.zeros((4, 3), np.float32).T}, TypeError, "h must be a C-contiguous float32 writable array"),
    ({"h0": np.zeros((3, 4), np.float32)}, ValueError, r"h0 must have shape \[2, 4\]"),
    ({"h0": np.zeros((2, 0), np.float32)}, TypeError, r"h0 must .* \[sequences, hidden\]"),
    ({"gates": np.zeros((3, 12), np.float32)}, ValueError, "gates must have shape"),
    ({"h_last": None}, TypeError, "h_last must be"),
    ({"batch_sizes": np.array([2, 1], np.int32)}, TypeError, "batch_sizes must be a C-contiguous int64"),
    ({"batch_sizes": np.array([], np.int64)}, ValueError, "batch_sizes must have at least one step"),
    ({"batch_sizes": np.array([1, 2])}, ValueError, "batch_sizes must be positive and not increase"),
    ({"batch_sizes": np.array([3, 0])}, ValueError, "batch_sizes must be positive and not increase"),
    ({"batch_sizes": np.array([2, 2])}, ValueError, r"gates_x must have shape \[4, 12\]"),
]


@pytest.mark.parametrize(("fault", "error", "message"), FAULTS)
def test_the_core_names_what_does_not_fit(fault: dict[str, Any], error: type[Exception], message: str) -> None:
    core().gru_forward(arrays(), kernel_threads())
    with pytest.raises(error, match=message):
        core().gru_forward(arrays() | fault, kernel_threads())


def test_the_core_names_what_is_missing() -> None:
    given = arrays()
    del given["bias"]
    with pytest.raises(ValueError, match="bias is missing"):
        core().gru_forward(given, kernel_threads())
    with pytest.raises(ValueError, match=r"weight must have shape \[16, 4\]"):
        core().lstm_forward(arrays(), kernel_threads())
    for name in ("gru_backward", "lstm_backward"):
        with pytest.raises(ValueError, match=r"is missing|must have shape"):
            getattr(core(), name)(arrays(), kernel_threads())
