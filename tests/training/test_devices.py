"""Which device a run learns on, what it says about it, and whole runs on another device."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot import PPO, compose
from surefoot.cli.main import main
from surefoot.compose import Specs, build_policy
from surefoot.data.specs import ArraySpec
from surefoot.errors import ConfigError
from surefoot.learning import devices
from surefoot.learning.devices import available_devices, choose_device
from surefoot.learning.execution import DeviceChoice
from surefoot.machine.ranks import Ranks
from surefoot.native.kernels import readable_only
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.training.checkpoint import read_checkpoint
from tests.second_device import DEVICE, SecondDevice

SPECS = Specs(ArraySpec("box", (8,), "float32"), ArraySpec("discrete", (), "int64", sizes=(2,), start=(0,)))
LARGE = {"policy": {"hidden": [512, 512]}, "ppo": {"batch_size": 2048}}
SIZES = {"num_envs": 4, "num_steps": 32, "batch_size": 64, "epochs": 2, "eval_episodes": 0}


def config_of(device: str, learner: str = "auto", **parts: Any) -> Config:
    return build_config({"train": {"device": device, "learner": learner}, **parts})


def choice_of(config: Config, ranks: Ranks | None = None) -> DeviceChoice:
    return choose_device(config, build_policy(config, SPECS), ranks or Ranks())


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with two GPUs, which this test cannot compute on."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "CPU", "", "cpu:1"])
def test_names_of_devices(name: str) -> None:
    with pytest.raises(ConfigError, match=r"train\.device: .*must be auto, cpu, cuda, mps or one of several GPUs"):
        config_of(name)


def test_the_native_learner_is_on_the_cpu() -> None:
    with pytest.raises(ConfigError, match=r"train\.device: cuda needs PyTorch's learner, and train\.learner is native"):
        config_of("cuda", "native")
    assert config_of("cpu", "native").train.device == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="the machine has a CUDA GPU")
def test_a_device_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"train\.device: cuda:7 is not available; choose one of: auto, cpu"):
        choice_of(config_of("cuda:7"))
    assert main(["train", "CartPole-v1", "--train.device", "cuda", "--train.steps", "64"]) == 2
    assert "train.device: cuda, here cuda:0, is not available; choose one of: auto, cpu" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="the machine has a CUDA GPU")
def test_a_loaded_agent_learns_where_it_is_told_to(tmp_path: Path) -> None:
    agent = PPO("CartPole-v1", **SIZES)
    agent.learn(128)
    agent.save(tmp_path / "agent.safetensors")
    with pytest.raises(ConfigError, match=r"cuda, here cuda:0, is not available"):
        PPO.load(tmp_path / "agent.safetensors", device="cuda").learn(128)
    PPO.load(tmp_path / "agent.safetensors", device="cpu").learn(128)


def test_auto_is_a_gpu_for_large_minibatches(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_devices()[:3] == ["cpu", "cuda:0", "cuda:1"]
    sizes = {"rollout": {"num_envs": 16, "num_steps": 128}}
    large, small = config_of("auto", **sizes, **LARGE), config_of("auto")
    assert choice_of(large) == DeviceChoice(
        torch.device("cuda:0"), "large minibatches: 2,048 samples x 536,067 parameters"
    )
    assert str(choice_of(small)) == "CPU (small minibatches: 64 samples x 9,667 parameters)"
    assert choice_of(config_of("auto", "native", **sizes, **LARGE)).reason == "train.learner is native"
    assert choice_of(config_of("cpu", **sizes, **LARGE)).is_cpu
    assert choice_of(config_of("cuda:1")).device == torch.device("cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(choice_of(large)) == "CPU (no CUDA GPU)"


def test_every_process_of_a_machine_has_its_own_gpu(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    for rank in range(2):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        assert choice_of(config_of("cuda")).device == torch.device("cuda", rank)
    with pytest.raises(ConfigError, match=r"cuda:1 would be the GPU of all of them; set it to cuda"):
        choice_of(config_of("cuda:1"))
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(
        ConfigError, match=r"cuda, here cuda:2, is not available; choose one of: auto, cpu, cuda:0, cuda:1"
    ):
        choice_of(config_of("cuda"))


def test_processes_agree_on_auto(two_gpus: None, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of("auto", rollout={"num_envs": 16, "num_steps": 128}, **LARGE)
    monkeypatch.setattr(Ranks, "gather", lambda self, reason: [reason, "no CUDA GPU"])
    assert choice_of(config, Ranks(0, 2)).reason == "another process: no CUDA GPU"


def test_a_tensor_of_another_device_is_summed_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[torch.device] = []
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda joined: summed.append(joined.mul_(2).device))
    with SecondDevice():
        tensors = [torch.ones(3).to(DEVICE), torch.ones(()).to(DEVICE)]
        Ranks(0, 2).sum(*tensors)
        assert [tensor.cpu().tolist() for tensor in tensors] == [[2, 2, 2], 2]
    assert summed == [torch.device("cpu")]


def test_a_run_says_where_it_learns(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="surefoot")
    PPO("CartPole-v1", **SIZES, device="cpu").learn(128)
    assert any(
        line.startswith("learning: native") and line.endswith("; device: CPU (train.device is cpu)")
        for line in caplog.messages
    )


def weights(run: Path) -> dict[str, Any]:
    state: dict[str, Any] = read_checkpoint(run / "checkpoints" / "step_000000000512.safetensors")
    return state


def flat(state: Any, path: str = "") -> dict[str, Tensor]:
    if isinstance(state, dict):
        return {name: leaf for key, part in state.items() for name, leaf in flat(part, f"{path}.{key}").items()}
    return {path: state} if isinstance(state, Tensor) else {}


def test_a_run_is_resumed_on_another_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints, rollback and hooks see only the CPU, so half a run on a device and half on the CPU is one run."""
    monkeypatch.setattr(devices, "_why_cpu", lambda *_: "on purpose")
    settings = [f"--{name}={value}" for name, value in {"rollout.num_envs": 4, "rollout.num_steps": 32}.items()]
    settings += ["--ppo.batch_size=64", "--ppo.epochs=2", "--train.learner=torch", "--train.eval_episodes=0"]
    settings += ["--normalize.obs=true", "--normalize.returns=true", "--log.console=off"]
    with readable_only():
        assert (
            main(
                [
                    "train",
                    "CartPole-v1",
                    "--preset=none",
                    *settings,
                    "--train.steps=512",
                    "--run-dir",
                    str(tmp_path / "cpu"),
                ]
            )
            == 0
        )
        with monkeypatch.context() as patch, SecondDevice() as device:
            patch.setattr(compose, "choose_device", lambda *_: DeviceChoice(DEVICE, "for this test"))
            assert (
                main(
                    [
                        "train",
                        "CartPole-v1",
                        "--preset=none",
                        *settings,
                        "--train.steps=256",
                        "--run-dir",
                        str(tmp_path / "x"),
                    ]
                )
                == 0
            )
        assert device.operations > 1000
        assert main(["resume", str(tmp_path / "x"), "--train.steps=512"]) == 0
    assert "learning: PyTorch; device: meta (for this test)" in (tmp_path / "x" / "log.txt").read_text()
    one, other = (flat(weights(tmp_path / name)) for name in ("cpu", "x"))
    assert list(one) == list(other)
    assert all(torch.equal(one[name], other[name]) for name in one)
