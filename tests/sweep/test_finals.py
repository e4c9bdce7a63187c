"""Finalists: all runs of a trial count, or none of them."""

from pathlib import Path

from surefoot.jobs.job import Job
from surefoot.jobs.local import LocalBackend
from surefoot.jobs.pool import Pool
from surefoot.sweep.trial import run_finals


def job(name: str, task: str, **arguments: object) -> Job:
    return Job(name, f"tests.jobs.tasks:{task}", arguments)


def test_a_finalist_whose_run_fails_is_left_out_and_its_other_runs_are_ended(tmp_path: Path) -> None:
    """Trial 2 has a run that fails, one that would never end, and one that waits for a slot."""
    forever = {"file": str(tmp_path / "never")}
    jobs = {
        1: [job(f"trial 1 seed {count}", "count", to=count) for count in (3, 1)],
        2: [
            job("trial 2 seed 0", "wait", **forever),
            job("trial 2 seed 1", "fail"),
            job("trial 2 seed 2", "wait", **forever),
        ],
    }
    said: list[tuple[str, str]] = []
    with Pool(LocalBackend(), slots=2, patience_s=60) as pool:
        results = run_finals(pool, jobs, lambda who, what: said.append((who, what)))
    assert results == {1: [{"counted": 3}, {"counted": 1}]}
    assert said == [("trial 2 seed 1", "failed in the finals: trial 2 seed 1: the environment is broken")]


def test_a_finalist_that_dies_again_and_again_is_left_out() -> None:
    with Pool(LocalBackend(), slots=1, patience_s=60) as pool:
        assert run_finals(pool, {4: [job("trial 4 seed 0", "die")]}, lambda who, what: None) == {}
