"""Readable reference of the core's recurrent cells over packed sequences, in any precision."""

import torch
from torch import Tensor
from torch.nn import functional


def gru_scan(
    gates_x: Tensor, weight_hh: Tensor, bias_hh: Tensor, h0: Tensor, batch_sizes: Tensor
) -> tuple[Tensor, Tensor]:
    """Step by step, the sequences that still run; see `scan.gru_scan`."""
    hidden, outputs, last, begin = h0, [], [], 0
    for size in batch_sizes.tolist():
        if size < len(hidden):
            last.append(hidden[size:])
            hidden = hidden[:size]
        r_x, z_x, n_x = gates_x[begin : begin + size].chunk(3, dim=1)
        r_h, z_h, n_h = functional.linear(hidden, weight_hh, bias_hh).chunk(3, dim=1)
        reset, keep = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
        new = torch.tanh(n_x + reset * n_h)
        hidden = (1 - keep) * new + keep * hidden
        outputs.append(hidden)
        begin += size
    last.append(hidden)
    return torch.cat(outputs), torch.cat(last[::-1])


def lstm_scan(
    gates_x: Tensor, weight_hh: Tensor, bias_hh: Tensor, h0: Tensor, c0: Tensor, batch_sizes: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Step by step, the sequences that still run; see `scan.lstm_scan`."""
    hidden, cell, outputs, last, begin = h0, c0, [], [], 0
    for size in batch_sizes.tolist():
        if size < len(hidden):
            last.append((hidden[size:], cell[size:]))
            hidden, cell = hidden[:size], cell[:size]
        gates = gates_x[begin : begin + size] + functional.linear(hidden, weight_hh, bias_hh)
        take, keep, new, show = gates.chunk(4, dim=1)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
        hidden = torch.sigmoid(show) * torch.tanh(cell)
        outputs.append(hidden)
        begin += size
    last.append((hidden, cell))
    h_last, c_last = (torch.cat(tensors[::-1]) for tensors in zip(*last, strict=True))
    return torch.cat(outputs), h_last, c_last
