"""Jobs in real processes: results, errors, deaths, hangs and stops."""

import os
import signal
import subprocess
import sys
import time

import psutil

from surefoot.jobs.job import Job
from surefoot.jobs.local import LocalBackend
from surefoot.jobs.pool import MOST_DEATHS, Event, Pool


def job(name: str, **arguments) -> Job:
    return Job(
        name,
        f"tests.jobs.local_tasks:{name.split()[0]}",
        {key: str(one) if key == "file" else one for key, one in arguments.items()},
    )


def run(*jobs: Job, slots: int = 2, patience_s: float = 60.0) -> list[Event]:
    with Pool(LocalBackend(), slots, patience_s) as pool:
        for one in jobs:
            pool.submit(one)
        return list(pool.events())


def test_results_errors_and_progress():
    events = run(
        job("add", a=1, b=2),
        job("refuse"),
        job("crash"),
        Job("threads", "tests.jobs.local_tasks:threads", threads=3),
        slots=4,
    )
    ends = {event.job.name: event for event in events if event.is_last}
    assert ends["add"].result == 3
    assert [event.progress for event in events if event.progress] == [{"share": 0.5}]
    assert str(ends["refuse"].error) == "refuse: optimizer.lr: must be above 0"
    assert "division of 1 by 0" in str(ends["crash"].error)
    assert ends["threads"].result == "3"


def test_a_job_that_dies_is_started_again_where_it_stopped(tmp_path):
    until = MOST_DEATHS + 1  # progress in between: these are not deaths in a row
    events = run(job("count_up", file=tmp_path / "count", until=until, says="more"))
    assert events[-1].result == until
    deaths = [event.death for event in events if event.death]
    assert deaths == ["its process was ended by signal 9"] * until


def test_a_job_that_always_dies_has_failed():
    *deaths, last = run(job("exit_early"))
    assert len(deaths) == MOST_DEATHS - 1
    assert (
        str(last.error)
        == f"exit_early: died {MOST_DEATHS} times in a row: its process exited with code 1: no memory left"
    )


def test_a_job_that_repeats_the_same_steps_and_dies_has_failed(tmp_path):
    events = run(job("count_up", file=tmp_path / "count", until=100, says="the same"))
    assert f"died {MOST_DEATHS} times in a row" in str(events[-1].error)
    assert sum(bool(event.death) for event in events) == MOST_DEATHS - 1


def test_a_job_that_hangs_is_killed_with_its_children_and_started_again(tmp_path):
    death, last = run(job("hang_once", file=tmp_path / "child"), patience_s=1.0)
    assert death.death == "it said nothing for 1 s and was killed"
    assert last.result == "awake"
    child = int((tmp_path / "child").read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_jobs_that_run_or_wait_can_be_stopped(tmp_path):
    with Pool(LocalBackend(), 1, 60.0) as pool:
        pool.submit(job("save_on_signal", file=tmp_path / "saved"))
        pool.submit(job("add waiting", a=1, b=1))
        pool.submit(job("add", a=2, b=3))
        results = []
        for event in pool.events():
            if event.progress == {"is_ready": True}:
                pool.stop("add waiting")
                pool.stop("save_on_signal")
            elif event.is_last:
                results.append((event.job.name, event.result))
    assert results == [("add", 5)]


def test_all_jobs_can_be_asked_to_stop(tmp_path):
    """Those that run save themselves and are not started again; those that wait are forgotten."""
    events = []
    with Pool(LocalBackend(), 1, 60.0) as pool:
        pool.submit(job("save_on_signal", file=tmp_path / "saved"))
        pool.submit(job("add waiting", a=1, b=1))
        events += pool.events(lambda: bool(events))
    assert (tmp_path / "saved").read_text() == "saved"
    assert [(event.job.name, bool(event.death)) for event in events] == [
        ("save_on_signal", False),
        ("save_on_signal", True),
    ]


def test_a_job_whose_parent_is_killed_is_asked_to_stop(tmp_path):
    code = (
        "import tests.jobs.test_pool as here, pathlib\n"
        f"here.run(here.job('save_on_signal', file=pathlib.Path({str(tmp_path / 'saved')!r})))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=os.getcwd())
    (child,) = _children(parent.pid)
    while not _is_ready(child):
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    child.wait(10)
    assert (tmp_path / "saved").read_text() == "saved"


def _children(pid: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := psutil.Process(pid).children():
            return found
        time.sleep(0.01)
    raise AssertionError("it started no job")


def _is_ready(process: psutil.Process) -> bool:
    """Whether it catches SIGTERM."""
    with open(f"/proc/{process.pid}/status") as file:
        caught = next(line for line in file if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
