"""The execution context: with how many threads a run computes in each phase, and together with whom."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from surefoot.core.config import Config, PPOConfig
from surefoot.core.cores import available_cores
from surefoot.core.torch_threads import torch_threads
from surefoot.native.kernels import kernel_thread_count, set_kernel_threads
from surefoot.policies.networks import MLP
from surefoot.policies.policy import Policy

SMALL_WORK = 10_000_000
"""Parameters times samples of a minibatch below which a single PyTorch thread is fastest."""


def _alone(tensor: Tensor) -> Tensor:
    return tensor


@dataclass(frozen=True)
class Execution:
    """Thread counts apply only inside `collecting` and `learning`, so that several runs can share a process."""

    threads: int = 1
    """Threads of the core's kernels while learning."""
    torch_threads: int = 1
    """PyTorch threads while learning."""
    collecting_threads: int = 1
    """PyTorch threads while collecting: one if environments keep the cores busy."""
    reduce: Callable[[Tensor], Tensor] = _alone
    """Sums a gradient over all processes that learn together."""

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """While rollouts are collected."""
        with torch_threads(self.collecting_threads):
            yield

    @contextmanager
    def learning(self) -> Iterator[None]:
        """While a rollout is scored and learned from."""
        before = kernel_thread_count()
        set_kernel_threads(self.threads)
        try:
            with torch_threads(self.torch_threads):
                yield
        finally:
            set_kernel_threads(before)


def execution_of(config: Config, policy: Policy, keeps_cores_busy: bool) -> Execution:
    """The configured number of threads, or one per core, limited by the amount of work."""
    most = config.train.threads or available_cores()
    learning = learning_threads(policy, config.ppo, most)
    return Execution(most, learning, 1 if keeps_cores_busy else learning)


def learning_threads(policy: Policy, ppo: PPOConfig, most: int) -> int:
    """PyTorch threads: one if the core does the work or there is little of it, else the maximum."""
    samples = min(ppo.batch_size, ppo.micro_batch_size or ppo.batch_size)
    in_core = [part for part in policy.modules() if isinstance(part, MLP) and part.learns_in_core(samples)]
    num_parameters = _size(policy) - sum(map(_size, in_core))
    return 1 if num_parameters * samples < SMALL_WORK else most


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
