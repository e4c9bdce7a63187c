"""Updates on real GPUs; skipped where there is none."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from surefoot import PPO
from surefoot.learning.device_learner import Mirror
from tests.learning.device_cases import CASES, Case, learned, state_of

SIZES = {"num_envs": 8, "num_steps": 64, "batch_size": 128, "epochs": 4, "eval_episodes": 0, "seed": 1}
GPUS = [
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: none is available")
    ),
    pytest.param(
        "mps",
        marks=pytest.mark.skipif(not torch.backends.mps.is_available(), reason="needs an Apple GPU: none is available"),
    ),
]
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU: none is available")


def flat(policy: dict[str, Tensor]) -> Tensor:
    return torch.cat([value.double().flatten() for value in policy.values()])


def distance(case: Case, device: str) -> float:
    """How far the weights after an update are from those of the CPU, relative to how far the update moved them."""
    here, there = case.learner(), case.learner(torch.device(device))
    before = flat(state_of(here)["policy"])
    learned(here, case)
    learned(there, case)
    after = flat(state_of(here)["policy"])
    return float((flat(state_of(there)["policy"]) - after).norm() / (after - before).norm())


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("name", CASES)
def test_a_gpu_learns_what_the_cpu_learns(name: str, device: str) -> None:
    assert distance(CASES[name], device) < 1e-2


@pytest.mark.parametrize("device", GPUS)
def test_mixed_precision(device: str) -> None:
    case = Case({"policy__precision": "bfloat16", "policy__hidden": (64, 64)})
    assert 0 < distance(case, device) < 0.5
    assert all(
        value.dtype != torch.bfloat16 for value in state_of(case.learner(torch.device(device)))["policy"].values()
    )


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("there_first", [True, False])
def test_a_run_continues_on_another_device(device: str, there_first: bool, tmp_path: Path) -> None:
    first, second = (device, "cpu") if there_first else ("cpu", device)
    agent = PPO("CartPole-v1", **SIZES, learner="torch", device=first)
    agent.learn(1024)
    agent.save(tmp_path / "agent.safetensors")
    other = PPO.load(tmp_path / "agent.safetensors", device=second)
    assert all(torch.equal(value, other.policy.state_dict()[name]) for name, value in agent.policy.state_dict().items())
    other.learn(1024)
    assert all(value.isfinite().all() for value in other.policy.state_dict().values())


@CUDA
def test_samples_and_weights_travel_through_pinned_memory() -> None:
    mirror = Mirror(torch.device("cuda:0"))
    case = CASES["gaussian"]
    policy = case.learner().policy
    copy = mirror.send(policy)
    assert all(buffer.is_pinned() for buffer in mirror._buffers.values())
    assert all(parameter.is_cuda for parameter in copy.parameters())
    assert not any(parameter.is_cuda for parameter in policy.parameters())
    assert mirror.move(torch.ones(3)).is_cuda


@CUDA
def test_the_optimizer_is_fused_on_cuda() -> None:
    learner = CASES["gaussian"].learner(torch.device("cuda:0"))
    with torch.profiler.profile() as profile:
        learned(learner, CASES["gaussian"])
    assert any("fused_adam" in event.key for event in profile.key_averages())
