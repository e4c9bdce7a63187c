"""The processes that train together, started by torchrun; one process alone is the usual case."""

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from surefoot.errors import ConfigError, RankError
from surefoot.output.failures import brief

Value = TypeVar("Value")

WAIT_S = 1800.0
"""Seconds that a process waits for the others: longer than any evaluation or rollout."""
_REDUCED = ("cpu", "cuda")
"""Devices on which torch.distributed can sum; tensors of others travel through the CPU."""
_FAILURE = "surefoot/failure"
_PROTOCOL = 4
"""Of pickles, which only processes of one run exchange: with this one, arrays that are read can be written to."""


@dataclass
class Ranks:
    """This process among all; what it exchanges with the others. Every process must make the same calls in order."""

    rank: int = 0
    size: int = 1
    is_broken: bool = False
    """Whether a process has failed: from then on each is alone."""
    bytes_sent: int = 0
    """Bytes that this process has handed to the others so far."""
    _store: Any = field(default=None, repr=False)

    @property
    def is_first(self) -> bool:
        """Whether this process writes the files and evaluates."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """This process's share of `range(count)`; shares are contiguous and nearly equal, the longer ones first."""
        size, longer = divmod(count, self.size)
        edges = [rank * size + min(rank, longer) for rank in range(self.size + 1)]
        return [range(*edge) for edge in pairwise(edges)][self.rank]

    def check_envs(self, count: int) -> None:
        """Refuse processes without an env."""
        if count < self.size:
            raise ConfigError(
                [
                    f"rollout.num_envs: {count} env{'s' * (count > 1)} cannot be divided among {self.size} processes;"
                    " raise it or start fewer processes"
                ]
            )

    def gather(self, value: Value) -> list[Value]:
        """The values of all processes, in the order of their ranks."""
        if self.size == 1 or self.is_broken:
            return [value]
        own = torch.frombuffer(bytearray(pickle.dumps(value, _PROTOCOL)), dtype=torch.uint8)
        sizes = [torch.zeros(1, dtype=torch.long) for _ in range(self.size)]
        with self._together():
            distributed.all_gather(sizes, torch.tensor([len(own)]))
            longest = int(max(sizes))
            found = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.size)]
            distributed.all_gather(found, torch.cat((own, own.new_zeros(longest - len(own)))))
        self.bytes_sent += len(own)
        return [pickle.loads(one.numpy().data) for one in found]

    def sum(self, *tensors: Tensor) -> None:
        """Sum tensors over all processes, in place; all processes get the same bits."""
        if self.size == 1:
            return
        first, *others = tensors
        joined = torch.cat([first.flatten(), *(other.flatten().to(first.dtype) for other in others)])
        if joined.device.type not in _REDUCED:
            joined = joined.cpu()
        with self._together():
            distributed.all_reduce(joined)
        self.bytes_sent += joined.nbytes
        pieces = joined.split([tensor.numel() for tensor in tensors])
        for tensor, piece in zip(tensors, pieces, strict=True):
            tensor.copy_(piece.view(tensor.shape))

    def greatest(self, number: int) -> int:
        """The greatest number of all processes."""
        if self.size == 1 or self.is_broken:
            return number
        found = torch.tensor(number)
        with self._together():
            distributed.all_reduce(found, distributed.ReduceOp.MAX)
        return int(found)

    def fail(self, error: BaseException) -> None:
        """Tell the others why this process ends."""
        if self._store is not None and not isinstance(error, RankError):
            with suppress(RuntimeError):
                self._store.set(_FAILURE, f"process {self.rank}: {brief(error)}")
        self.is_broken = self.size > 1

    @contextmanager
    def _together(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            self.is_broken = True
            raise RankError(f"another process of this run failed or stopped: {self._reason(error)}") from error

    def _reason(self, error: RuntimeError) -> str:
        with suppress(RuntimeError):
            if self._store is not None and self._store.check([_FAILURE]):
                return str(self._store.get(_FAILURE).decode())
        return f"it does not answer ({brief(error)})"


ALONE = Ranks()


@contextmanager
def together() -> Iterator[Ranks]:
    """All processes that torchrun started, or this one alone; an error in one of them ends all."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 or "RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        yield ALONE
        return
    wait = timedelta(seconds=WAIT_S)
    store, rank, size = next(rendezvous("env://", timeout=wait))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=wait)
    ranks, is_over = Ranks(rank, size, _store=store), threading.Event()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        threading.Thread(target=_watch, args=(os.getppid(), is_over), daemon=True).start()
    try:
        yield ranks
    except BaseException as error:
        ranks.fail(error)
        raise
    finally:
        is_over.set()
        with suppress(RuntimeError):
            distributed.destroy_process_group()


def _watch(parent: int, is_over: threading.Event) -> None:
    """Stop like after SIGTERM if torchrun was killed; Linux's own signal comes once per thread of torchrun."""
    while not is_over.wait(0.5):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return
