"""The learner's tanh is the core's, and nobody can tell but the clock."""

import pytest
import torch

from surefoot.native import core
from surefoot.native.kernels import readable_only
from surefoot.policies.tanh import tanh

VALUES = torch.cat((torch.linspace(-12, 12, 9_999), torch.tensor([0.0, 1e-30, -1e-6, 40.0, -torch.inf, torch.inf])))


def test_a_gradient_takes_the_core() -> None:
    given = VALUES.clone().requires_grad_()
    assert "CoreTanh" in type(tanh(given).grad_fn).__name__
    assert "CoreTanh" not in type(tanh(given.double()).grad_fn).__name__


def test_as_torch_gives_it_but_for_the_last_bits() -> None:
    given = VALUES.clone().requires_grad_()
    torch.testing.assert_close(tanh(given), torch.tanh(given), rtol=5e-7, atol=0)


def test_the_gradient_is_right() -> None:
    given = VALUES[:-2].clone().requires_grad_()
    (ours,) = torch.autograd.grad((tanh(given) * given).sum(), given)
    (theirs,) = torch.autograd.grad((torch.tanh(given) * given).sum(), given)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_columns_of_a_wider_tensor() -> None:
    wide = torch.randn(7, 10, requires_grad=True)
    torch.testing.assert_close(tanh(wide[:, 2:5]), torch.tanh(wide[:, 2:5]))


def test_without_the_core_it_is_torch() -> None:
    given = VALUES.clone().requires_grad_()
    with readable_only():
        assert torch.equal(tanh(given), torch.tanh(given))


def test_the_core_refuses_results_of_another_size() -> None:
    with pytest.raises(ValueError, match="as many elements"):
        core().tanh(VALUES.numpy(), VALUES[1:].clone().numpy())
