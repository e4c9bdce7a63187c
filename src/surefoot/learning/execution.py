"""The execution context: where a run computes, with how many threads in each phase, and together with whom."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from surefoot.learning.devices import ON_CPU, DeviceChoice, minibatch_work
from surefoot.learning.execution import ONE_THREAD, Crowd
from surefoot.learning.gradient import unchanged
from surefoot.machine.cores import available_cores
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.machine.torch_threads import torch_threads
from surefoot.native.kernels import kernel_thread_count, set_kernel_threads
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config, PPOConfig
from surefoot.storage.saved import Saved

SMALL_WORK = 10_000_000
"""Work of a minibatch below which PyTorch has one thread.

A second core makes a gradient step 0.7 times as fast at 2 million samples times parameters, 1.0 at 7, 1.2 at 20 and 1.8
at 35 million if it is idle. If other processes keep it busy, the step takes 3 to 80 times as long.
"""
_MOST_THREADS = 1024


@dataclass(frozen=True)
class Execution:
    """Thread counts apply only inside `collecting` and `learning`, so that several runs can share a process."""

    threads: int = 1
    """Threads of the core's kernels while learning."""
    torch_most: int = 1
    """PyTorch threads where it has much work."""
    is_wide_learning: bool = False
    """Whether PyTorch has much work on the CPU while learning."""
    is_wide_collecting: bool = False
    """Whether it has much work while collecting, and environments do not keep the cores busy."""
    reduce: Callable[..., None] = unchanged
    """Sums tensors over all processes that learn together, in place."""
    device: DeviceChoice = ON_CPU
    """Where PyTorch learns."""
    crowd: Crowd = field(default_factory=Crowd, compare=False)

    @property
    def torch_threads(self) -> int:
        """PyTorch threads while learning."""
        return self.torch_most if self.is_wide_learning else 1

    @property
    def collecting_threads(self) -> int:
        """PyTorch threads while collecting."""
        return self.torch_most if self.is_wide_collecting else 1

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
            # Whatever an env or a hook has set.
            with torch.enable_grad(), self.crowd.threads(self.threads) as count, torch_threads(self.torch_threads):
                set_kernel_threads(count)
                yield
        finally:
            set_kernel_threads(before)

    def state(self) -> dict[str, int]:
        """For checkpoints: what the last bits of PyTorch's results depend on, besides the config."""
        return {"torch_most": self.torch_most}

    def resumed(self, saved: Saved) -> "Execution":
        """With the threads that a run began with, also on a machine with more or fewer cores."""
        most = saved["torch_most"].integer(least=1, most=_MOST_THREADS)
        return replace(self, torch_most=most, crowd=Crowd(remedy_of(most if self.is_wide_learning else 1)))


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


def remedy_of(torch_threads: int) -> str:
    """What helps an update on a busy machine."""
    if torch_threads == 1:
        return ONE_THREAD
    return (
        f"PyTorch keeps its {torch_threads} threads, because the last bits of the results depend on their number; end"
        " the run and resume it with --train.threads 1, which is probably faster"
    )
