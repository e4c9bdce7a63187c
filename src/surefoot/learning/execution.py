"""The execution context: with how many threads a run computes in each phase, and together with whom."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from surefoot.core.config import Config, PPOConfig
from surefoot.core.cores import available_cores
from surefoot.core.ranks import ALONE, Ranks
from surefoot.core.torch_threads import torch_threads
from surefoot.learning.crowd import Crowd
from surefoot.learning.gradient import unchanged
from surefoot.native.kernels import kernel_thread_count, set_kernel_threads
from surefoot.policies.policy import Policy

SMALL_WORK = 10_000_000
"""Samples of a minibatch times parameters below which a single PyTorch thread is fastest."""


@dataclass(frozen=True)
class Execution:
    """Thread counts apply only inside `collecting` and `learning`, so that several runs can share a process."""

    threads: int = 1
    """Threads of the core's kernels while learning."""
    torch_threads: int = 1
    """PyTorch threads while learning."""
    collecting_threads: int = 1
    """PyTorch threads while collecting: one if environments keep the cores busy."""
    reduce: Callable[..., None] = unchanged
    """Sums tensors over all processes that learn together, in place."""
    crowd: Crowd = field(default_factory=Crowd, compare=False)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """While rollouts are collected."""
        with torch_threads(self.collecting_threads):
            yield

    @contextmanager
    def learning(self) -> Iterator[None]:
        """While a rollout is scored and learned from."""
        before = kernel_thread_count()
        try:
            with self.crowd.threads(self.threads) as count, torch_threads(self.torch_threads):
                set_kernel_threads(count)
                yield
        finally:
            set_kernel_threads(before)


def execution_of(
    config: Config, policy: Policy, keeps_cores_busy: bool, learns_in_core: bool = False, ranks: Ranks = ALONE
) -> Execution:
    """The configured number of threads, or one per core, limited by the amount of work."""
    most = config.train.threads or available_cores()
    learning = 1 if learns_in_core else learning_threads(policy, config.ppo, most)
    reduce = ranks.sum if ranks.size > 1 else unchanged
    return Execution(most, learning, 1 if keeps_cores_busy else learning, reduce)


def learning_threads(policy: Policy, ppo: PPOConfig, most: int) -> int:
    """PyTorch threads: one, unless there is much work. Its results depend on the number, those of the core do not."""
    samples = min(ppo.batch_size, ppo.micro_batch_size or ppo.batch_size)
    return 1 if samples * sum(parameter.numel() for parameter in policy.parameters()) < SMALL_WORK else most
