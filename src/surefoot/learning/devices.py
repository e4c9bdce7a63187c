"""Chooses where PyTorch learns, on the CPU or on a GPU, and on how many threads."""

import os
from dataclasses import dataclass

import torch

from surefoot.errors import ConfigError
from surefoot.learning.execution import CPU, ON_CPU, Crowd, DeviceChoice, Execution, remedy_of
from surefoot.learning.gradient import unchanged
from surefoot.machine.cores import available_cores
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config, PPOConfig

SMALL_WORK = 10_000_000
"""Work of a minibatch below which PyTorch has one thread.

A second core makes a gradient step 0.7 times as fast at 2 million samples times parameters, 1.0 at 7, 1.2 at 20 and 1.8
at 35 million if it is idle. If other processes keep it busy, the step takes 3 to 80 times as long.
"""
LARGE_WORK = 100_000_000
"""Work of a minibatch from which on `auto` uses a GPU.

An estimate, not a measurement: the two hundred small kernels of a gradient step take a GPU about 2 ms however little
they compute, and a CPU of a few cores computes the products of so much work in a few milliseconds.
"""


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


def execution_of(
    config: Config,
    policy: Policy,
    keeps_cores_busy: bool,
    learns_in_core: bool = False,
    ranks: Ranks = ALONE,
    device: DeviceChoice = ON_CPU,
) -> Execution:
    """The configured number of threads, or one per core, limited by the amount of work."""
    most = config.train.threads or available_cores()
    is_wide = not learns_in_core and has_much_work(policy, config.ppo)
    learns, collects = is_wide and device.is_cpu, is_wide and not keeps_cores_busy
    reduce = ranks.sum if ranks.size > 1 else unchanged
    return Execution(most, most, learns, collects, reduce, device, Crowd(remedy_of(most if learns else 1)))


def has_much_work(policy: Policy, ppo: PPOConfig) -> bool:
    """Whether PyTorch gains by several threads. Its results depend on their number, those of the core do not."""
    return minibatch_work(policy, ppo).size >= SMALL_WORK


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
