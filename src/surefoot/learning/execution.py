"""The execution context: where a run computes, with how many threads in each phase, and together with whom."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from surefoot.core.config import Config, PPOConfig
from surefoot.core.cores import available_cores
from surefoot.core.ranks import ALONE, Ranks
from surefoot.core.saved import Saved
from surefoot.core.torch_threads import torch_threads
from surefoot.learning.crowd import ONE_THREAD, Crowd
from surefoot.learning.devices import ON_CPU, DeviceChoice
from surefoot.learning.gradient import unchanged
from surefoot.learning.work import minibatch_work
from surefoot.native.kernels import kernel_thread_count, set_kernel_threads
from surefoot.policies.policy import Policy

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
    torch_threads: int = 1
    """PyTorch threads while learning."""
    collecting_threads: int = 1
    """PyTorch threads while collecting: one if environments keep the cores busy."""
    reduce: Callable[..., None] = unchanged
    """Sums tensors over all processes that learn together, in place."""
    device: DeviceChoice = ON_CPU
    """Where PyTorch learns."""
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

    def state(self) -> dict[str, int]:
        """For checkpoints: what the last bits of PyTorch's results depend on."""
        return {"torch_threads": self.torch_threads, "collecting_threads": self.collecting_threads}

    def resumed(self, saved: Saved) -> "Execution":
        """With the numbers of threads that a run began with, also on a machine with more or fewer cores."""
        learning, collecting = (saved[name].integer(least=1, most=_MOST_THREADS) for name in self.state())
        return replace(self, torch_threads=learning, collecting_threads=collecting, crowd=Crowd(remedy_of(learning)))


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
    threads = 1 if learns_in_core else learning_threads(policy, config.ppo, most)
    learning, collecting = threads if device.is_cpu else 1, 1 if keeps_cores_busy else threads
    reduce = ranks.sum if ranks.size > 1 else unchanged
    return Execution(most, learning, collecting, reduce, device, Crowd(remedy_of(learning)))


def learning_threads(policy: Policy, ppo: PPOConfig, most: int) -> int:
    """PyTorch threads: one, unless there is much work. Its results depend on the number, those of the core do not."""
    return 1 if minibatch_work(policy, ppo).size < SMALL_WORK else most


def remedy_of(torch_threads: int) -> str:
    """What helps an update on a busy machine."""
    if torch_threads == 1:
        return ONE_THREAD
    return (
        f"PyTorch keeps its {torch_threads} threads, because the last bits of the results depend on their number; end"
        " the run and resume it with --train.threads 1, which is probably faster"
    )
