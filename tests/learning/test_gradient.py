import copy
import math

import pytest
import torch
from torch import nn

from surefoot.data.records import Knobs
from surefoot.errors import CheckpointMismatchError
from surefoot.learning.gradient import GradientStep
from surefoot.settings.config import OptimizerConfig
from surefoot.storage.saved import Saved


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def inputs(step: int) -> torch.Tensor:
    return torch.randn(7, 3, generator=torch.Generator().manual_seed(step))


KNOBS = Knobs(lr=3e-4)


def train(module: nn.Module, gradient: GradientStep, steps: range, knobs: Knobs = KNOBS) -> None:
    for step in steps:
        gradient.add(module(inputs(step)).square().mean())
        gradient.step(knobs)


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def test_each_part_has_its_own_norm_before_the_clip():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), 1e-3)
    loss = module(inputs(0)).square().mean()
    pieces = torch.autograd.grad(loss, list(module.parameters()), retain_graph=True)
    gradient.add(loss)
    watched = gradient.step(KNOBS)
    for part, own in {"0": pieces[:2], "2": pieces[2:]}.items():
        expected = torch.cat([piece.flatten() for piece in own]).norm().item()
        assert watched[f"train/{part}_grad_norm"].item() == pytest.approx(expected)


@pytest.mark.parametrize("algorithm", ["adam", "adamw"])
@pytest.mark.parametrize("max_norm", [0.1, None])
def test_steps_are_those_of_torch_with_a_global_clip(algorithm, max_norm):
    config = OptimizerConfig(algorithm=algorithm, adam_eps=1e-5, betas=(0.8, 0.9), weight_decay=0.1)
    ours, theirs = network(), network()
    gradient = GradientStep(ours, config, max_norm)
    kind = torch.optim.Adam if algorithm == "adam" else torch.optim.AdamW
    optimizer = kind(theirs.parameters(), lr=0.01, eps=1e-5, betas=(0.8, 0.9), weight_decay=0.1)
    for step in range(20):
        optimizer.zero_grad()
        theirs(inputs(step)).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), max_norm or math.inf)
        optimizer.step()
    train(ours, gradient, range(20), Knobs(lr=0.01))
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-5, atol=1e-6)


def test_the_norm_is_that_before_the_clip():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), 1e-3)
    loss = module(inputs(0)).square().mean()
    pieces = torch.autograd.grad(loss, list(module.parameters()), retain_graph=True)
    expected = torch.cat([piece.flatten() for piece in pieces]).norm().item()
    gradient.add(loss)
    watched = gradient.step(KNOBS)
    assert watched["grad_norm"].item() == pytest.approx(expected)
    assert watched["skipped"] == 0


def test_shares_of_a_loss_add_up():
    whole, parts = network(), network()
    whole_step, parts_step = (GradientStep(module, OptimizerConfig(), None) for module in (whole, parts))
    whole_step.add(whole(inputs(0)).square().mean())
    for part in inputs(0).split(3):
        parts_step.add(parts(part).square().mean(), len(part) / 7)
    torch.testing.assert_close(parts_step.step(KNOBS), whole_step.step(KNOBS))
    torch.testing.assert_close(weights(parts), weights(whole))


def test_parameters_that_a_loss_does_not_touch_have_no_gradient():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), None)
    gradient.add(module[0](inputs(0)).square().mean())
    before = weights(module)
    gradient.step(KNOBS)
    assert [torch.equal(a, b) for a, b in zip(weights(module), before, strict=True)] == [False, False, True, True]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("max_norm", [0.5, None])
def test_a_bad_gradient_is_skipped_as_if_it_had_never_been(bad, max_norm):
    disturbed, calm = network(), network()
    disturbed_step = GradientStep(disturbed, OptimizerConfig(), max_norm)
    calm_step = GradientStep(calm, OptimizerConfig(), max_norm)
    for module, gradient in ((disturbed, disturbed_step), (calm, calm_step)):
        train(module, gradient, range(3))
    before = copy.deepcopy(disturbed_step.state())
    disturbed_step.add(disturbed(inputs(9)).square().mean() * bad)
    assert disturbed_step.step(KNOBS)["skipped"] == 1
    after = disturbed_step.state()
    assert torch.equal(before["adam"]["step"], after["adam"]["step"])
    train(disturbed, disturbed_step, range(3, 6))
    train(calm, calm_step, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(weights(disturbed), weights(calm), strict=True))


def test_the_very_first_gradient_may_be_bad():
    module = network()
    before = weights(module)
    gradient = GradientStep(module, OptimizerConfig(), 0.5)
    gradient.add(module(inputs(0)).sum() * math.nan)
    assert gradient.step(KNOBS)["skipped"] == 1
    assert all(torch.equal(a, b) for a, b in zip(weights(module), before, strict=True))
    train(module, gradient, range(3))
    assert all(weight.isfinite().all() for weight in weights(module))


def test_building_it_changes_no_weight_and_no_result():
    module, plain = network(), network()
    GradientStep(module, OptimizerConfig(), 0.5)
    assert all(torch.equal(a, b) for a, b in zip(weights(module), weights(plain), strict=True))
    assert torch.equal(module(inputs(0)), plain(inputs(0)))


def test_weights_can_be_loaded_and_rescaled_in_place_afterwards():
    # PopArt and checkpoints write into the weights; they must remain views of what the optimizer steps.
    module, other = network(), network(1)
    gradient = GradientStep(module, OptimizerConfig(), None)
    module.load_state_dict(other.state_dict())
    with torch.no_grad():
        module[0].weight.mul_(2)
    before = weights(module)
    train(module, gradient, range(1), Knobs(lr=0.1))
    assert all((a != b).any() for a, b in zip(weights(module), before, strict=True))
    torch.testing.assert_close(weights(module), before, rtol=0, atol=0.11)


def test_frozen_parameters_stay():
    module = network()
    module[0].weight.requires_grad_(False)
    frozen = module[0].weight.clone()
    gradient = GradientStep(module, OptimizerConfig(weight_decay=0.5), 0.5)
    train(module, gradient, range(3))
    assert torch.equal(module[0].weight, frozen)


def test_a_saved_state_goes_on_bit_for_bit():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), 0.5)
    train(module, gradient, range(5))
    saved_weights, saved = copy.deepcopy(module.state_dict()), copy.deepcopy(gradient.state())
    train(module, gradient, range(5, 8))
    resumed = network(1)
    resumed_gradient = GradientStep(resumed, OptimizerConfig(), 0.5)
    resumed.load_state_dict(saved_weights)
    resumed_gradient.load_state(saved)
    train(resumed, resumed_gradient, range(5, 8))
    assert all(torch.equal(a, b) for a, b in zip(weights(module), weights(resumed), strict=True))


def test_a_state_of_before_the_first_step_forgets_the_moments():
    fresh, used = network(), network()
    fresh_gradient, used_gradient = (GradientStep(m, OptimizerConfig(), 0.5) for m in (fresh, used))
    train(used, used_gradient, range(3))
    used_gradient.load_state(GradientStep(network(), OptimizerConfig(), 0.5).state())
    used.load_state_dict(network().state_dict())
    train(fresh, fresh_gradient, range(3))
    train(used, used_gradient, range(3))
    assert all(torch.equal(a, b) for a, b in zip(weights(fresh), weights(used), strict=True))


def test_a_restore_never_overwrites_the_configured_learning_rate():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(), None)
    train(module, gradient, range(2), Knobs(lr=1e-3))
    resumed = network()
    resumed_gradient = GradientStep(resumed, OptimizerConfig(), None)
    resumed_gradient.load_state(gradient.state())
    before = weights(resumed)
    train(resumed, resumed_gradient, range(1), Knobs(lr=0.5))
    assert max(float((a - b).abs().max()) for a, b in zip(weights(resumed), before, strict=True)) > 0.1


def test_the_learning_rate_is_the_knob_of_each_step():
    module = network()
    gradient = GradientStep(module, OptimizerConfig(lr=1.0), None)
    before = weights(module)
    train(module, gradient, range(1), Knobs(lr=1e-9))
    torch.testing.assert_close(weights(module), before, rtol=0, atol=1e-7)


def test_moments_of_another_network_are_refused_by_name():
    gradient = GradientStep(network(), OptimizerConfig(), 0.5)
    other = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
    other_gradient = GradientStep(other, OptimizerConfig(), 0.5)
    train(other, other_gradient, range(1))
    with pytest.raises(CheckpointMismatchError, match=r"exp_avg\.0\.weight has shape \(6, 3\), not") as caught:
        gradient.check_state(Saved(other_gradient.state()))
    assert all(f"exp_avg.{name} has shape" in str(caught.value) for name in ("0.bias", "0.weight", "2.weight"))
    assert gradient.state() == {"adam": {}, "transforms": {}}
