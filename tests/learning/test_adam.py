"""Adam: the fused kernel, its public reference, and torch's own optimizers agree."""

import pytest
import torch

from surefoot.learning.adam import Adam
from surefoot.native.kernels import readable_only
from surefoot.settings.config import OptimizerConfig

SIZE = 37


def gradients(count: int, scale: float = 1.0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [scale * torch.randn(SIZE, generator=generator) for _ in range(count)]


def start() -> torch.Tensor:
    return torch.linspace(-1, 1, SIZE)


def stepped(config: OptimizerConfig, skips: set[int], count: int = 12) -> tuple[torch.Tensor, Adam]:
    parameters = start()
    adam = Adam(parameters, config)
    for step, gradient in enumerate(gradients(count)):
        is_skipped = step in skips
        given = torch.full_like(gradient, torch.nan) if is_skipped else gradient.clone()
        adam.step(given, 0.01 / (1 + step), torch.tensor(float(is_skipped)))
    return parameters, adam


@pytest.mark.parametrize("algorithm", ["adam", "adamw"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("skips", [set(), {0}, {3, 4, 11}], ids=["none skipped", "first skipped", "some skipped"])
def test_the_fused_kernel_and_the_readable_reference_agree(algorithm, weight_decay, skips):
    config = OptimizerConfig(algorithm=algorithm, weight_decay=weight_decay, betas=(0.8, 0.9), adam_eps=1e-4)
    fused, ours = stepped(config, skips)
    with readable_only():
        readable, reference = stepped(config, skips)
    assert not torch.equal(fused, start())
    torch.testing.assert_close(fused, readable, rtol=1e-5, atol=1e-7)
    assert ours.count == reference.count == 12 - len(skips)
    for kind, moment in ours.moments.items():
        torch.testing.assert_close(moment, reference.moments[kind], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("algorithm", ["adam", "adamw"])
def test_the_readable_reference_is_torchs_optimizer(algorithm):
    config = OptimizerConfig(algorithm=algorithm, weight_decay=0.1, betas=(0.8, 0.9), adam_eps=1e-4)
    with readable_only():
        ours, _ = stepped(config, set())
    parameter = torch.nn.Parameter(start())
    kind = torch.optim.Adam if algorithm == "adam" else torch.optim.AdamW
    optimizer = kind([parameter], betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1)
    for step, gradient in enumerate(gradients(12)):
        optimizer.param_groups[0]["lr"] = 0.01 / (1 + step)
        parameter.grad = gradient
        optimizer.step()
    torch.testing.assert_close(ours, parameter.detach(), rtol=1e-6, atol=1e-7)


def test_a_skipped_step_leaves_everything_as_it_was():
    for step_with in (lambda: stepped(OptimizerConfig(), {0, 1}, 2), lambda: readable(OptimizerConfig(), {0, 1})):
        parameters, adam = step_with()
        assert torch.equal(parameters, start())
        assert adam.count == 0
        assert all(not moment.any() for moment in adam.moments.values())


def readable(config: OptimizerConfig, skips: set[int]) -> tuple[torch.Tensor, Adam]:
    with readable_only():
        return stepped(config, skips, 2)
