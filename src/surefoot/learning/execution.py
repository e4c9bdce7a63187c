"""The execution context: where a run computes, with how many threads in each phase, and together with whom."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from surefoot.learning.gradient import unchanged
from surefoot.machine.torch_defaults import torch_threads
from surefoot.native.kernels import kernel_thread_count, set_kernel_threads
from surefoot.storage.saved import Saved
from surefoot.telemetry.machine import waited_s

_MOST_THREADS = 1024
_log = logging.getLogger("surefoot")

CROWDED = 0.25
"""Fraction of an update that is spent waiting for a core, from which on the machine counts as crowded."""
_NOTICEABLE_S = 0.005
_IN_A_ROW = 3
"""Crowded updates in a row before a thread is given up: a single one may be chance."""
_FEWEST, _MOST = 20, 640
"""Updates on one thread before all are tried again; twice as many each time that the machine is still crowded."""

ONE_THREAD = "learning on one thread until they are done"


class Crowd:
    """Learns on one thread while others keep the cores busy: threads that wait for each other are slowest then.

    Decides on how many threads of the core the next update runs. The core gives the same bits with any number.

    When it first notices a crowd, it logs the remedy: PyTorch's threads are not changed during a run.
    """

    def __init__(self, remedy: str = ONE_THREAD, waited: Callable[[], float | None] = waited_s) -> None:
        self._remedy, self._waited = remedy, waited
        self._updates_left, self._pause, self._is_known = 0, _FEWEST, False
        self._in_a_row = 0

    @contextmanager
    def threads(self, most: int) -> Iterator[int]:
        """The number of threads of an update, which is watched."""
        if most == 1:
            yield 1
            return
        count = 1 if self._updates_left else most
        began, waited = time.monotonic(), self._waited()
        yield count
        now = self._waited()
        if count == 1:
            self._updates_left = max(0, self._updates_left - 1)
        elif waited is not None and now is not None:
            self._judge(now - waited, time.monotonic() - began)

    def _judge(self, waited_s: float, took_s: float) -> None:
        if waited_s < max(_NOTICEABLE_S, CROWDED * took_s):
            self._pause, self._in_a_row = _FEWEST, 0
            return
        self._in_a_row += 1
        if self._in_a_row < _IN_A_ROW:
            return
        self._in_a_row = _IN_A_ROW - 1  # after a pause, one is enough
        self._updates_left, self._pause = self._pause, min(2 * self._pause, _MOST)
        if not self._is_known:
            self._is_known = True
            _log.info(
                "other processes keep the cores busy (%.0f %% of an update was spent waiting for one): %s",
                100 * waited_s / took_s,
                self._remedy,
            )


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


CPU = torch.device("cpu")
ON_CPU = DeviceChoice(CPU, "nothing else was asked for")


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


def remedy_of(torch_threads: int) -> str:
    """What helps an update on a busy machine."""
    if torch_threads == 1:
        return ONE_THREAD
    return (
        f"PyTorch keeps its {torch_threads} threads, because the last bits of the results depend on their number; end"
        " the run and resume it with --train.threads 1, which is probably faster"
    )
