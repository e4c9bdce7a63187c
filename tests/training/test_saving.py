"""Periodic checkpoints: when they are due, what a failure costs. The real full disk is in tests/faults."""

import logging
from pathlib import Path

import pytest

from surefoot.data.records import IterationReport, Learned, Progress, RolloutStats
from surefoot.errors import RunDirectoryError
from surefoot.training.run_directory import RunDirectory
from surefoot.training.saving import SaveCheckpoints


def report(step: int) -> IterationReport:
    learned = Learned(*[0.0] * 7, epochs=1, skipped_steps=0, lr=0.0, clip=0.0, entropy_coef=0.0)
    return IterationReport(Progress(step, 1000), RolloutStats(0, (), ()), learned, 0.0, 0.0)


def saved(run: RunDirectory) -> list[int]:
    return sorted(int(path.stem.removeprefix("step_")) for path in run.saved())


@pytest.fixture
def run(tmp_path):
    with RunDirectory(tmp_path / "run") as run:
        yield run


def break_folder(run: RunDirectory) -> Path:
    """Put a file where the folder was: root may write anywhere, but not below a file."""
    moved = run.path / "moved"
    run.checkpoints.rename(moved)
    run.checkpoints.touch()
    return moved


def mend_folder(run: RunDirectory) -> None:
    run.checkpoints.unlink()
    (run.path / "moved").rename(run.checkpoints)


def test_saves_when_due_and_at_the_end(run):
    saving = SaveCheckpoints(run, lambda: {}, every=100, keep=9, start=0)
    for step in (60, 120, 180, 240):
        saving.after_iteration(report(step))
    assert saved(run) == [120, 240]
    saving.finish(250)
    assert saved(run) == [120, 240, 250]


def test_a_resumed_run_saves_when_the_whole_one_would(run):
    saving = SaveCheckpoints(run, lambda: {}, every=100, keep=9, start=180)
    for step in (190, 240):
        saving.after_iteration(report(step))
    assert saved(run) == [240]


def test_the_end_is_saved_before_what_may_fail_and_again_with_what_it_changed(run):
    state = {"value": 1}
    saving = SaveCheckpoints(run, lambda: state, every=0, keep=9, start=0)
    saving.after_iteration(report(1000))  # the last step
    assert run.newest()[1] == {"value": 1}
    state["value"] = 2
    saving.finish(1000)
    assert run.newest()[1] == {"value": 2}
    state["value"] = 3
    assert saving.save(1000), "an error after that leaves the complete one"
    assert run.newest()[1] == {"value": 2}


def test_a_failure_to_save_the_end_again_leaves_the_first(run):
    saving = SaveCheckpoints(run, lambda: {}, every=0, keep=9, start=0)
    saving.after_iteration(report(1000))
    break_folder(run)
    saving.finish(1000)
    mend_folder(run)
    assert saved(run) == [1000]


def test_a_failure_warns_once_and_is_retried_every_iteration(run, caplog):
    caplog.set_level(logging.INFO, "surefoot")
    saving = SaveCheckpoints(run, lambda: {}, every=100, keep=9, start=0)
    saving.after_iteration(report(100))
    break_folder(run)
    for step in (200, 210, 220):
        saving.after_iteration(report(step))
    mend_folder(run)
    saving.after_iteration(report(230))
    saving.after_iteration(report(240))
    assert saved(run) == [100, 230]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "checkpoint at step 200 not saved (Not a directory); will retry, training continues",
        "checkpoint at step 230 saved after retrying",
    ]


def test_a_second_failure_warns_again(run, caplog):
    saving = SaveCheckpoints(run, lambda: {}, every=100, keep=9, start=0)
    for step in (100, 200):
        break_folder(run)
        saving.after_iteration(report(step))
        mend_folder(run)
        saving.after_iteration(report(step + 10))
    assert caplog.text.count("not saved") == 2


def test_a_failure_at_the_end_is_an_error(run):
    saving = SaveCheckpoints(run, lambda: {}, every=100, keep=9, start=0)
    saving.after_iteration(report(100))
    break_folder(run)
    with pytest.raises(RunDirectoryError, match="the run ended at step 150, but the checkpoint could not be saved"):
        saving.finish(150)
    mend_folder(run)
    assert saved(run) == [100]
