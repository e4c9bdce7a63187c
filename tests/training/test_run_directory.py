"""A run's folder: what is kept, what is cleaned, who may use it."""

import logging
import os
import shutil

import pytest

from surefoot.errors import CheckpointError, RunDirectoryError
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config, read_yaml
from surefoot.training.checkpoint import write_checkpoint
from surefoot.training.run_directory import RunDirectory

_log = logging.getLogger("surefoot")


def steps_of(run: RunDirectory) -> list[int]:
    return [int(path.stem.removeprefix("step_")) for path in run.saved()]


def test_the_newest_are_kept(tmp_path):
    with RunDirectory(tmp_path) as run:
        for step in (5, 10, 100, 1000, 99_999):
            run.save(step, {"step": step}, keep=3)
        assert steps_of(run) == [99_999, 1000, 100]
        path, state = run.newest()
        assert state == {"step": 99_999}
        assert path == tmp_path / "checkpoints" / "step_000000099999.safetensors"
        run.save(100_000, {"step": 100_000}, keep=1)
        assert steps_of(run) == [100_000]


def test_the_one_just_saved_is_kept_even_behind_others(tmp_path):
    with RunDirectory(tmp_path) as run:
        for step in (100, 200, 300):
            run.save(step, {}, keep=3)
        run.save(150, {}, keep=1)
        assert steps_of(run) == [150]


def test_the_same_step_again_replaces_itself(tmp_path):
    with RunDirectory(tmp_path) as run:
        for value in (1, 2):
            run.save(7, {"value": value}, keep=2)
        assert steps_of(run) == [7]
        assert run.newest()[1] == {"value": 2}


def test_only_checkpoints_are_taken_for_checkpoints(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.save(7, {}, keep=1)
        for name in ("step_9.safetensors.bak", "step_x.safetensors", "notes.txt", ".step_9.safetensors.1.tmp"):
            (run.checkpoints / name).touch()
        assert steps_of(run) == [7]


def test_damaged_ones_are_passed_over_with_a_warning(tmp_path, caplog):
    with RunDirectory(tmp_path) as run:
        for step in (1, 2, 3):
            run.save(step, {"step": step}, keep=3)
        (run.checkpoints / "step_000000000003.safetensors").write_bytes(b"")
        path, state = run.newest()
        assert (path.name, state) == ("step_000000000002.safetensors", {"step": 2})
    assert "step_000000000003.safetensors is not a Surefoot checkpoint" in caplog.text


def test_no_checkpoint_is_an_error_and_so_are_only_damaged_ones(tmp_path):
    with RunDirectory(tmp_path) as run:
        with pytest.raises(CheckpointError, match="has no checkpoint to resume from"):
            run.newest()
        (run.checkpoints / "step_000000000003.safetensors").write_bytes(b"")
        with pytest.raises(CheckpointError, match="none of the 1 checkpoints"):
            run.newest()


def test_leftovers_are_cleaned_on_the_next_start(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.save(1, {}, keep=1)
    gone, alive = 2**22 + 1, os.getppid()  # no process has a number that large
    leftovers = [
        tmp_path / f".best.safetensors.{gone}.tmp",
        tmp_path / f".config.yaml.{os.getpid()}.tmp",
        run.checkpoints / f".step_000000000002.safetensors.{gone}.tmp",
    ]
    others = [tmp_path / f".best.safetensors.{alive}.tmp", tmp_path / ".mine.tmp", tmp_path / f".mine.yaml.{gone}.tmp"]
    for file in leftovers + others:
        file.write_bytes(b"half a checkpoint")
    (tmp_path / f".nonfinite_step_1.json.{gone}.tmp").mkdir()
    with RunDirectory(tmp_path):
        assert not any(leftover.exists() for leftover in leftovers)
        assert all(other.exists() for other in others)
        assert steps_of(run) == [1]


FILES = ("lock", "log.txt", "checkpoints")


@pytest.mark.parametrize("name", FILES)
def test_what_is_in_the_place_of_a_file_is_named(tmp_path, name):
    if name == "checkpoints":
        (tmp_path / name).touch()
    else:
        (tmp_path / name).mkdir()
    with pytest.raises(RunDirectoryError, match=rf"cannot write .*{name} \((Is a directory|File exists)\); move it"):
        RunDirectory(tmp_path).__enter__()


@pytest.mark.parametrize("name", ["lock", "log.txt"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_files_are_never_written_through_a_link(tmp_path, name, kind):
    run, precious = tmp_path / "run", tmp_path / "precious"
    run.mkdir()
    precious.write_text("precious")
    if kind == "link":
        (run / name).symlink_to(precious)
    else:
        os.mkfifo(run / name)
    cause = "it is a symbolic link" if kind == "link" else "(it is not a regular file|No such device or address)"
    with pytest.raises(RunDirectoryError, match=rf"cannot write .*{name} \({cause}\); move it away"):
        RunDirectory(run).__enter__()
    assert precious.read_text() == "precious"


def test_a_config_that_is_no_file_holds_no_run(tmp_path):
    run = RunDirectory(tmp_path)
    os.mkfifo(run.config_file)
    assert not run.holds_run, "reading it would block forever"
    run.write_config(Config())
    assert run.holds_run
    run.config_file.unlink()
    run.config_file.mkdir()
    assert not run.holds_run
    with pytest.raises(RunDirectoryError, match=r"cannot write .*config\.yaml \(Is a directory\); move it away"):
        run.write_config(Config())


def test_links_in_the_place_of_config_and_checkpoints_are_replaced(tmp_path):
    run, precious = RunDirectory(tmp_path / "run"), tmp_path / "precious"
    precious.write_text("precious")
    with run:
        names = (run.config_file, run.best, run.checkpoints / "step_000000000007.safetensors")
        for path in names:
            path.symlink_to(precious)
            path.with_name(f".{path.name}.{os.getpid()}.tmp").symlink_to(precious)
        run.write_config(Config())
        write_checkpoint(run.best, {})
        run.save(7, {}, keep=1)
        assert not any(path.is_symlink() for path in names)
    assert precious.read_text() == "precious"


def test_a_deleted_directory_is_created_again(tmp_path, caplog):
    with RunDirectory(tmp_path / "run") as run:
        run.write_config(Config())
        shutil.rmtree(run.path)
        run.save(7, {"step": 7}, keep=1)
        assert run.newest()[1] == {"step": 7}
        assert run.holds_run
        assert "was deleted and is created again" in run.log_file.read_text()
        with pytest.raises(RunDirectoryError, match=f"in use by process {os.getpid()}"):
            RunDirectory(run.path).__enter__()


def test_a_second_user_is_refused_and_told_who_the_first_is(tmp_path):
    with RunDirectory(tmp_path):
        with pytest.raises(RunDirectoryError, match=f"in use by process {os.getpid()}; stop it or choose"):
            RunDirectory(tmp_path).__enter__()
        assert (tmp_path / "lock").read_text() == str(os.getpid())
    with RunDirectory(tmp_path):
        pass


def test_a_refused_user_removes_nothing(tmp_path):
    with RunDirectory(tmp_path) as run:
        half_written = run.checkpoints / ".step_000000000002.safetensors.12.tmp"
        half_written.touch()
        with pytest.raises(RunDirectoryError):
            RunDirectory(tmp_path).__enter__()
        assert half_written.exists()


def test_the_log_is_written_inside_only(tmp_path):
    with RunDirectory(tmp_path) as run:
        _log.info("inside")
    _log.warning("outside")
    with RunDirectory(tmp_path):
        _log.info("inside again")
    lines = run.log_file.read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["INFO inside", "INFO inside again"]


def test_the_config_is_complete(tmp_path):
    config = build_config({"ppo": {"gamma": 0.5}, "log": {"console": "off"}, "policy": {"hidden": [3, 2]}})
    run = RunDirectory(tmp_path)
    assert not run.holds_run
    run.write_config(config)
    assert run.holds_run
    assert build_config(read_yaml(run.config_file)) == config
    assert os.listdir(tmp_path) == ["config.yaml"]


def test_unused_names(tmp_path):
    assert RunDirectory.unused(tmp_path, "CartPole-v1").path == tmp_path / "CartPole-v1"
    for name in ("CartPole-v1", "CartPole-v1-2", "my_envs_Walk_v0"):
        (tmp_path / name).mkdir()
    assert RunDirectory.unused(tmp_path, "CartPole-v1").path == tmp_path / "CartPole-v1-3"
    assert RunDirectory.unused(tmp_path, "my envs:Walk/v0").path == tmp_path / "my_envs_Walk_v0-2"
    assert RunDirectory.unused(tmp_path, "../../etc").path.parent == tmp_path


@pytest.mark.parametrize("name", ["..", "."])
def test_a_name_never_leads_out_of_the_folder(tmp_path, name):
    assert RunDirectory.unused(tmp_path, name).path.resolve().parent == tmp_path


def test_the_best_score_is_that_of_the_file(tmp_path, caplog):
    run = RunDirectory(tmp_path)
    assert run.best_score("mean_reward") is None
    write_checkpoint(run.best, {"best_score": 3.5})
    assert run.best_score("mean_reward") == 3.5
    write_checkpoint(run.best, {"best_score": 4.5, "best_metric": "-won"})
    assert run.best_score("-won") == 4.5
    assert not caplog.text
    assert run.best_score("won") is None
    assert "the best policy was chosen by -won, but train.best_metric is won now" in caplog.text
    caplog.clear()
    run.best.write_bytes(b"damaged")
    assert run.best_score("mean_reward") is None
    assert "the next evaluation replaces it" in caplog.text


def test_only_the_run_that_is_here_may_go_on_here(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.refuse_other_run(0)
        run.write_config(Config())
        run.save(100, {}, keep=1)
        run.refuse_other_run(100)
        run.refuse_other_run(200)
        for step in (0, 99):
            with pytest.raises(RunDirectoryError, match="already contains a run at step 100"):
                run.refuse_other_run(step)


def test_a_run_that_is_at_its_start_is_continued_by_resume(tmp_path):
    with RunDirectory(tmp_path) as run:
        run.write_config(Config())
        with pytest.raises(RunDirectoryError, match="at its start; continue it with 'surefoot resume"):
            run.refuse_other_run(0)
