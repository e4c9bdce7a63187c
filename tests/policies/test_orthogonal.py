"""Initial weights: PyTorch's orthogonal ones, in one order of operations."""

import pytest
import torch
from torch import nn

from surefoot.policies import networks
from surefoot.policies.networks import orthogonal_weight_

SHAPES = [(5, 3), (3, 5), (4, 4), (1, 7), (7, 1), (64, 200), (6, 2, 3, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_core", [True, False])
def test_weights_are_those_of_pytorch(shape: tuple[int, ...], has_core: bool, monkeypatch: pytest.MonkeyPatch):
    if not has_core:
        monkeypatch.setattr(networks, "core_or_none", lambda: None)
    ours, reference = torch.empty(shape), torch.empty(shape)
    for weight, fill in ((ours, orthogonal_weight_), (reference, nn.init.orthogonal_)):
        torch.manual_seed(4)
        fill(weight, 1.5)
    assert torch.allclose(ours, reference, atol=2e-6)
    flat = ours.flatten(1).double()
    flat = flat if flat.shape[0] <= flat.shape[1] else flat.T
    assert torch.allclose(flat @ flat.T, 2.25 * torch.eye(len(flat), dtype=torch.float64), atol=1e-6)
