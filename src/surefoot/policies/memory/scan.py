"""One layer of recurrent cells over packed sequences; the core's loop is much faster than PyTorch's.

B samples are in the order of torch's PackedSequence; `batch_sizes` `[L]` is the number of active sequences (of S) per
step. `gates_x` `[B, gates * H]` is the input part: `x W_ih^T + b_ih`. Gates and formulas are those of PyTorch.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from surefoot.native.kernels import kernel_threads, kernels
from surefoot.policies.core_tensors import is_plain
from surefoot.policies.memory import scan_reference


def gru_scan(
    gates_x: Tensor, weight_hh: Tensor, bias_hh: Tensor, h0: Tensor, batch_sizes: Tensor, one_path: bool = False
) -> tuple[Tensor, Tensor]:
    """h of every sample `[B, H]`, and the last one of every sequence `[S, H]`; both have gradients."""
    if _suits_the_core(one_path, batch_sizes, gates_x, weight_hh, bias_hh, h0):
        result: tuple[Tensor, Tensor] = _CoreGRU.apply(gates_x, weight_hh, bias_hh, h0, batch_sizes)
        return result
    return scan_reference.gru_scan(gates_x, weight_hh, bias_hh, h0, batch_sizes)


def lstm_scan(
    gates_x: Tensor,
    weight_hh: Tensor,
    bias_hh: Tensor,
    h0: Tensor,
    c0: Tensor,
    batch_sizes: Tensor,
    one_path: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """h of every sample `[B, H]`, and the last h and c of every sequence `[S, H]`; all have gradients."""
    if _suits_the_core(one_path, batch_sizes, gates_x, weight_hh, bias_hh, h0, c0):
        result: tuple[Tensor, Tensor, Tensor] = _CoreLSTM.apply(gates_x, weight_hh, bias_hh, h0, c0, batch_sizes)
        return result
    return scan_reference.lstm_scan(gates_x, weight_hh, bias_hh, h0, c0, batch_sizes)


class _CoreGRU(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, gates_x: Tensor, weight: Tensor, bias: Tensor, h0: Tensor, batch_sizes: Tensor
    ) -> tuple[Tensor, Tensor]:
        samples, size = len(gates_x), h0.shape[1]
        gates, h, h_last = gates_x.new_empty(samples, 4 * size), gates_x.new_empty(samples, size), torch.empty_like(h0)
        kept = {"batch_sizes": batch_sizes, "weight": weight, "h0": h0, "gates": gates, "h": h}
        _run("gru_forward", kept | {"gates_x": gates_x, "bias": bias, "h_last": h_last})
        context.save_for_backward(*kept.values())
        return h, h_last

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_h: Tensor, grad_h_last: Tensor) -> tuple[Tensor | None, ...]:
        kept = dict(zip(("batch_sizes", "weight", "h0", "gates", "h"), context.saved_tensors, strict=True))
        weight, h0, h = kept["weight"], kept["h0"], kept["h"]
        grad_gates_x, grad_gates_h = h.new_empty(len(h), len(weight)), h.new_empty(len(h), len(weight))
        made = {"grad_gates_x": grad_gates_x, "grad_gates_h": grad_gates_h}
        made |= {"h_before": torch.empty_like(h), "grad_h0": torch.empty_like(h0)}
        given = {"grad_h": grad_h.contiguous(), "grad_h_last": grad_h_last.contiguous()}
        _run("gru_backward", kept | given | made)
        return grad_gates_x, grad_gates_h.T @ made["h_before"], grad_gates_h.sum(0), made["grad_h0"], None


class _CoreLSTM(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, gates_x: Tensor, weight: Tensor, bias: Tensor, h0: Tensor, c0: Tensor, batch_sizes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        h, gates = gates_x.new_empty(len(gates_x), h0.shape[1]), torch.empty_like(gates_x)
        made = {"h": h, "c": torch.empty_like(h), "gates": gates}
        kept = {"batch_sizes": batch_sizes, "weight": weight, "h0": h0, "c0": c0} | made
        h_last, c_last = torch.empty_like(h0), torch.empty_like(c0)
        _run("lstm_forward", kept | {"gates_x": gates_x, "bias": bias, "h_last": h_last, "c_last": c_last})
        context.save_for_backward(*kept.values())
        return h, h_last, c_last

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_h: Tensor, grad_h_last: Tensor, grad_c_last: Tensor) -> tuple[Tensor | None, ...]:
        names = ("batch_sizes", "weight", "h0", "c0", "h", "c", "gates")
        kept = dict(zip(names, context.saved_tensors, strict=True))
        grad_gates, h_before = torch.empty_like(kept["gates"]), torch.empty_like(kept["h"])
        grad_h0, grad_c0 = torch.empty_like(kept["h0"]), torch.empty_like(kept["c0"])
        made = {"grad_gates_x": grad_gates, "h_before": h_before, "grad_h0": grad_h0, "grad_c0": grad_c0}
        given = {"grad_h": grad_h, "grad_h_last": grad_h_last, "grad_c_last": grad_c_last}
        _run("lstm_backward", kept | made | {name: gradient.contiguous() for name, gradient in given.items()})
        return grad_gates, grad_gates.T @ h_before, grad_gates.sum(0), grad_h0, grad_c0, None


def _suits_the_core(one_path: bool, batch_sizes: Tensor, gates_x: Tensor, *others: Tensor) -> bool:
    """PyTorch computes a single step without a gradient: the reference for native rollouts.

    Unless `one_path` is set for acting and learning.
    """
    wanted = one_path or len(batch_sizes) > 1 or (torch.is_grad_enabled() and gates_x.requires_grad)
    return wanted and kernels() is not None and all(is_plain(tensor) for tensor in (gates_x, *others))


def _run(name: str, tensors: dict[str, Tensor]) -> None:
    """Run one of the core's passes, which writes into the output tensors."""
    run = getattr(kernels(), name)
    run({key: tensor.detach().numpy() for key, tensor in tensors.items()}, kernel_threads())
