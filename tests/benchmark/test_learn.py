"""The arithmetic that `bench learn` takes as its limit, and what it measures."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from surefoot.benchmark.arithmetic import ACTION_SIZE, NETWORKS, OBS_SIZE, SEQUENCE_LENGTH, product_rate
from surefoot.benchmark.learn import Cell, Course, Learning, Side, bench_learn, config_of
from surefoot.benchmark.noise_env import NoiseEnv
from surefoot.compose import Specs, build_policy
from surefoot.errors import ConfigError
from surefoot.machine.torch_defaults import torch_threads

SAMPLES = 2 * SEQUENCE_LENGTH


def policy_of(name: str):
    config = config_of(NETWORKS[name], SAMPLES, "torch", 1)
    env = NoiseEnv(2, OBS_SIZE, ACTION_SIZE)
    return build_policy(config, Specs(env.obs_spec, env.action_spec))


@pytest.mark.parametrize("name", ["64-64", "256-256", "3x512"])
def test_the_limit_counts_what_torch_counts(name: str) -> None:
    """PyTorch counts two operations for a multiply-add; kernels of the core would not be counted, so no gradient mode
    of ours is on: plain layers with the policy's own sizes."""
    policy = policy_of(name)
    layers = [part for part in policy.modules() if isinstance(part, torch.nn.Linear)]
    obs = torch.randn(SAMPLES, OBS_SIZE)
    with FlopCounterMode(display=False) as counter:
        total = torch.zeros(())
        for layer in layers:
            # Layers on observations get an input without gradient, as in learning.
            wide = obs if layer.in_features == OBS_SIZE else torch.randn(SAMPLES, layer.in_features, requires_grad=True)
            total = total + layer(wide).sum()
        total.backward()
    assert counter.get_total_flops() == 2 * NETWORKS[name].multiply_adds(SAMPLES)


def test_the_limit_of_a_gru_counts_every_weight() -> None:
    """Three products per weight and sample, but no gradient of observations and of the states before sequences."""
    policy = policy_of("gru-256")
    weights = sum(part.numel() for name, part in policy.named_parameters() if "weight" in name)
    recurrent = [part for part in policy.modules() if isinstance(part, torch.nn.GRU)]
    assert len(recurrent) == 2
    without = sum(part.weight_ih_l0.numel() + part.weight_hh_l0.numel() / SEQUENCE_LENGTH for part in recurrent)
    assert NETWORKS["gru-256"].multiply_adds(SAMPLES) == pytest.approx(SAMPLES * (3 * weights - without))


def test_a_minibatch_is_a_gradient_step_of_the_real_learner() -> None:
    learning = Learning(NETWORKS["gru-256"], SAMPLES, "torch", 1)
    before = [part.clone() for part in learning._trainer.policy.parameters()]
    assert learning.run(2) > 0
    after = list(learning._trainer.policy.parameters())
    assert any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert learning._trainer.learner.update == 2
    assert learning._rollout.chunks is not None


def test_shares_are_computed_per_round() -> None:
    cell = Cell(NETWORKS["64-64"], 64, {"native": Side([1.0, 2.0]), "torch": Side([4.0, 4.0])}, [0.5, 0.5])
    share, speedup = cell.share("native"), cell.speedup
    assert share is not None
    assert speedup is not None
    assert (share.low, share.high) == (0.25, 0.5)
    assert (speedup.low, speedup.high) == (2.0, 4.0)
    cell.sides["native"].error = "unknown"
    assert cell.share("native") is cell.speedup is cell.sides["native"].spread is None


def test_the_sides_take_turns_and_a_missing_learner_is_named() -> None:
    said: list[str] = []
    report = bench_learn(Course((64,), ("64-64",), repeats=2, seconds=0.001, threads=1), said.append)
    cell = report.results["cells"][0]
    assert len(cell["limit_ms"]["repeats"]) == len(cell["learners"]["torch"]["repeats"]) == 2
    assert said[0].startswith("64-64, batch 64: native")
    native = cell["learners"]["native"]
    assert native["share"]["median"] > 0


def test_refusals_come_together() -> None:
    with pytest.raises(ConfigError) as refused:
        Course((63,), ("64-65",), repeats=0)
    assert [problem.split(":")[0] for problem in refused.value.problems][:2] == ["--network", "--batch"]
    assert "--repeats" in refused.value.problems[2]


def test_the_rate_of_the_machine() -> None:
    with torch_threads(1):
        assert product_rate(0.001) > 1e8
