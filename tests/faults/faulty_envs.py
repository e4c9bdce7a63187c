"""Envs and functions of the worker faults, where a worker finds them without importing torch."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.envs.tasks import CounterEnv, SavingEnv
from tests.envs.unruly import UnrulyEnv


class ShowingWorse(CounterEnv):
    """Ends with a final observation of NaN, which nobody uses as it is terminated."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return (np.full_like(obs, np.nan) if terminated else obs), reward, terminated, truncated, info


class UnrulySavingEnv(UnrulyEnv, SavingEnv):
    """Can say where it is, until it misbehaves."""


class ParentEnv(CounterEnv):
    """Starts a program of its own and ends it as it should."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._child = subprocess.Popen(["sleep", "300"])
        file.write_text(str(self._child.pid))

    def close(self) -> None:
        self._child.terminate()
        self._child.wait()


class UnkeepableEnv(SavingEnv):
    def save_state(self) -> Any:
        return {"what": lambda: 0}


class OddEnv(CounterEnv):
    """Does one odd thing in its third step."""

    def __init__(self, do: Any) -> None:
        super().__init__(lengths=(99,))
        self._do = do

    def step(self, action: Any) -> Any:
        if self.place.step == 2:
            self._do()
        return super().step(action)


class Wordless(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError


def close_everything_and_stay() -> None:
    os.closerange(3, 64)
    time.sleep(60)


def leave_a_child_and_die() -> None:
    subprocess.Popen(["sleep", "5"], close_fds=False)
    os.kill(os.getpid(), signal.SIGSEGV)


def raise_wordless() -> None:
    raise Wordless


def raise_many_lines() -> None:
    raise ValueError("\nfirst\n" + "second\n" * 9)
