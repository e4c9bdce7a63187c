"""Subjects in processes of their own: they answer, fail in words, and leave nobody behind."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from surefoot.benchmark import subject_process
from surefoot.benchmark.host import GRACE_S, describe
from surefoot.benchmark.process_tree import members
from surefoot.benchmark.rounds import Effort
from surefoot.benchmark.subject import Plan, run_recipe
from surefoot.benchmark.subject_process import SubjectError, SubjectProcess
from surefoot.errors import ConfigError
from surefoot.settings.layers import build_config
from tests.benchmark.trees import is_running, wait_until
from tests.cli.processes import Process, start

pytestmark = pytest.mark.xdist_group("subject processes")


def plan(env: str = "CartPole-v1", **kwargs: str) -> Plan:
    config = build_config(
        {
            "env": {"id": env, "kwargs": kwargs},
            "rollout": {"num_envs": 2, "num_steps": 16},
            "ppo": {"epochs": 1, "batch_size": 16},
            "policy": {"hidden": [4]},
        }
    )
    return Plan(env, run_recipe("training", config), threads=1)


@contextmanager
def started(which: Plan) -> Iterator[SubjectProcess]:
    process = SubjectProcess(which)
    try:
        yield process
    finally:
        process.close()


def test_errors_in_one_line() -> None:
    assert describe(ConfigError(["a: wrong", "b: wrong"])) == "2 invalid settings: - a: wrong - b: wrong"
    assert describe(KeyError("missing")) == "KeyError: 'missing'"


def test_one_that_is_killed() -> None:
    with started(plan()) as process:
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(SubjectError, match="exited with code -9"):
            process.build()


def test_one_that_closes_its_pipe_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_process, "GRACE_S", 0.5)
    which = plan("tests.benchmark.odd_envs:Mute-v0")
    with started(which) as process, pytest.raises(SubjectError, match="stopped answering"):
        process.build()


def test_one_that_is_still_starting_is_not_waited_for(tmp_path: Path) -> None:
    """It has nothing to close, and where it is just then an interrupt may be lost."""
    finished = Process(_interrupt_while_it_starts, str(tmp_path / "begun")).wait()
    assert finished.code == 0, finished.err
    assert float(finished.out) < GRACE_S / 2


def _interrupt_while_it_starts(file: str) -> None:
    def interrupt() -> None:
        wait_until(Path(file).exists, "it is being built")
        os.kill(os.getpid(), signal.SIGINT)

    process = SubjectProcess(plan("tests.benchmark.odd_envs:Deaf-v0", file=file))
    Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        process.build()
    began = time.monotonic()
    process.close(gently=False)
    print(time.monotonic() - began, flush=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nobody_is_left_when_a_benchmark_is_ended(number: int) -> None:
    """A kill cannot be caught, so the processes have to notice by themselves, in the middle of a long window."""
    settings = ("--rollout.engine", "processes", "--rollout.workers", 2, "--policy.hidden", 4)
    benchmark = start("bench", "train", "CartPole-v1", *settings, "--iterations", 10**6)
    benchmark.wait_until(lambda: len(members(benchmark.pid)) >= 4)  # it, the subject and two workers
    everybody = members(benchmark.pid)
    time.sleep(0.5)
    benchmark.send(number)
    assert benchmark.wait().code == (-9 if number == signal.SIGKILL else 130)
    wait_until(lambda: not any(map(is_running, everybody)), "all of them ended")


@pytest.mark.parametrize("wrong", [{"repeats": 0}, {"seconds": 0.0}, {"warmup": -1}, {"iterations": 0}])
def test_efforts_that_measure_nothing(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be greater than 0"):
        Effort(**wrong)  # type: ignore[arg-type]
