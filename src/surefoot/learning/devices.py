"""Where PyTorch learns: on the CPU or on a GPU."""

import os
from dataclasses import dataclass

import torch

from surefoot.errors import ConfigError
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config, PPOConfig

LARGE_WORK = 100_000_000
"""Work of a minibatch from which on `auto` uses a GPU.

An estimate, not a measurement: the two hundred small kernels of a gradient step take a GPU about 2 ms however little
they compute, and a CPU of a few cores computes the products of so much work in a few milliseconds.
"""
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Work:
    """How much a minibatch computes, by which threads and devices are chosen: samples at once, and parameters.

    A gradient step has about 6 FLOPs per sample and parameter.
    """

    samples: int
    parameters: int

    @property
    def size(self) -> int:
        """Samples times parameters."""
        return self.samples * self.parameters

    def __str__(self) -> str:
        return f"{self.samples:,} samples x {self.parameters:,} parameters"


def minibatch_work(policy: Policy, ppo: PPOConfig) -> Work:
    """The work of a minibatch, or of a micro-batch if minibatches are split."""
    samples = min(ppo.batch_size, ppo.micro_batch_size or ppo.batch_size)
    return Work(samples, sum(parameter.numel() for parameter in policy.parameters()))


@dataclass(frozen=True)
class DeviceChoice:
    """A device, and why it was chosen."""

    device: torch.device
    reason: str

    @property
    def is_cpu(self) -> bool:
        """Whether learning stays on the CPU."""
        return self.device.type == "cpu"

    def __str__(self) -> str:
        name = "CPU" if self.is_cpu else str(self.device)
        if self.device.type == "cuda":
            name += f", {torch.cuda.get_device_name(self.device)}"
        return f"{name} ({self.reason})"


ON_CPU = DeviceChoice(CPU, "nothing else was asked for")


def choose_device(config: Config, policy: Policy, ranks: Ranks = ALONE) -> DeviceChoice:
    """The configured device, which must be there; with other processes, every one of them must call this."""
    wanted = config.train.device
    if wanted != "auto":
        return DeviceChoice(_available(wanted), f"train.device is {wanted}")
    reason = _why_cpu(config, policy)
    reasons = [why for why in ranks.gather(reason) if why]  # all processes learn on the same kind of device
    if reasons:
        return DeviceChoice(CPU, reason or f"another process: {reasons[0]}")
    return DeviceChoice(_available("cuda"), f"large minibatches: {minibatch_work(policy, config.ppo)}")


def available_devices() -> list[str]:
    """The devices of this machine that PyTorch can use."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]


def _why_cpu(config: Config, policy: Policy) -> str:
    """Why `auto` is the CPU here; empty if it is a GPU."""
    if config.train.learner == "native":
        return "train.learner is native"
    if f"cuda:{_local_rank()}" not in available_devices():
        return "no CUDA GPU"
    work = minibatch_work(policy, config.ppo)
    return "" if work.size >= LARGE_WORK else f"small minibatches: {work}"


def _available(wanted: str) -> torch.device:
    there = available_devices()
    if _local_size() > 1 and ":" in wanted:
        raise ConfigError(
            f"train.device: with several processes, {wanted} would be the GPU of all of them; set it to cuda"
        )
    name = f"cuda:{_local_rank()}" if wanted == "cuda" else wanted
    if name not in there:
        built = "" if torch.version.cuda or wanted == "mps" else "; this PyTorch was built without CUDA"
        own = "" if name == wanted else f", here {name},"
        raise ConfigError(
            f"train.device: {wanted}{own} is not available; choose one of: auto, {', '.join(there)}{built}"
        )
    return torch.device(name)


def _local_rank() -> int:
    """The number of this process on its machine; each has its own GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def _local_size() -> int:
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
