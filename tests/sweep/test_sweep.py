"""Whole sweeps: killed and continued, pruned, failing, used by two at once."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from surefoot.cli.main import main
from surefoot.errors import ConfigError, RunDirectoryError, SweepError
from surefoot.presets import configured
from surefoot.settings.layers import read_yaml
from surefoot.sweep.directory import BEST, DATABASE, SETTINGS, write_settings
from surefoot.sweep.settings import read_settings
from surefoot.sweep.study import Study, Trial
from surefoot.sweep.sweep import Sweep
from tests.jobs import forked
from tests.sweep.sweeps import raw


@pytest.fixture(autouse=True)
def forked_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.jobs.local.subprocess", forked)


def trials_of(directory: Path) -> list[Trial]:
    with Study(directory / DATABASE, read_settings(read_yaml(directory / SETTINGS), {})[1]) as study:
        return study.trials()


def sweep_in(directory: Path, settings: dict[str, Any], **sections: dict[str, Any]) -> Trial:
    return Sweep(*read_settings(raw(settings, **sections), {}), directory).run()


def test_a_killed_sweep_goes_on_and_loses_no_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trial 0 has finished and trial 1 is running when the sweep is killed; its directory is the default one."""
    monkeypatch.chdir(tmp_path)
    folder, file = Path("runs/sweep-config"), tmp_path / "config.yaml"
    settings = {"sampler": "grid", "tunables": {"optimizer.lr": {"choices": [1e-2, 1e-3]}}, "parallel": 1}
    train = {"steps": 12_800, "eval_every": 3200}
    file.write_text(yaml.safe_dump(raw(settings, train=train)))
    command = ["sweep", str(file)]
    process = forked.start(*command)
    metrics = [folder / "trials" / name / "metrics.jsonl" for name in ("0000", "0001")]
    process.wait_until(metrics[0].exists)
    with pytest.raises(RunDirectoryError, match=f"in use by process {process.pid}"):
        Sweep(*read_settings(read_yaml(file), {}), folder).run()
    process.wait_until(lambda: metrics[1].exists() and metrics[1].stat().st_size > 0)
    process.send(signal.SIGKILL)
    process.wait()
    first = metrics[0].read_bytes()

    assert main(command) == 0
    output = capsys.readouterr().out
    assert "2 trials" in output
    assert "(1 finished, 1 to be continued)" in output
    assert metrics[0].read_bytes() == first
    assert (folder / "trials" / "0001" / "log.txt").read_text().count(" from step ") == 2
    steps = [json.loads(line)["step"] for line in metrics[1].read_text().splitlines()]
    assert steps == sorted(set(steps))  # nothing was trained twice
    trials = trials_of(folder)
    assert [trial.state for trial in trials] == ["complete", "complete"]
    assert [trial.values["optimizer.lr"] for trial in trials] == [1e-2, 1e-3]
    assert [step for step, _ in trials[1].evaluations] == [3200, 6400, 9600, 12_800]
    best = max(trials, key=lambda trial: trial.objective or 0.0)
    assert configured(None, read_yaml(folder / BEST)).config.optimizer.lr == best.values["optimizer.lr"]
    assert f"surefoot train --config {folder / BEST}" in output

    with pytest.raises(ConfigError, match=r"sweep\.episodes: cannot change when a sweep is continued") as raised:
        sweep_in(folder, {**settings, "episodes": 3}, train={**train, "steps": 6400}, schedules={"lr": "linear"})
    changed = [text.partition(":")[0] for text in raised.value.problems]
    assert changed == ["schedules.lr", "train.steps", "sweep.episodes"]

    (folder / BEST).unlink()
    (folder / BEST).mkdir()
    assert main(command) == 2
    assert f"cannot write {folder / BEST} (Is a directory)" in capsys.readouterr().err
    (folder / BEST).rmdir()
    assert main(command) == 0  # all trials are finished: only the best settings are written
    assert configured(None, read_yaml(folder / BEST)).config.optimizer.lr == best.values["optimizer.lr"]


def test_a_bad_trial_is_pruned(tmp_path: Path) -> None:
    """With learning rate 1e-9 a policy learns nothing."""
    rates = {"optimizer.lr": {"choices": [1e-2, 1e-9]}}
    settings = {"sampler": "grid", "tunables": rates, "parallel": 1, "pruner": "halving", "episodes": 8}
    train = {"steps": 6144, "eval_every": 1024}
    best = sweep_in(tmp_path, settings, train=train, rollout={"num_steps": 64}, ppo={"epochs": 4})
    good, bad = trials_of(tmp_path)
    assert (good.state, bad.state) == ("complete", "pruned")
    assert len(bad.evaluations) < len(good.evaluations) == 6
    assert best == good


def test_a_failing_trial_does_not_end_the_sweep_but_if_all_fail_it_says_why(tmp_path: Path) -> None:
    """The values of the first three trials contradict each other, the last has NaN."""
    tunables = {"rollout.num_steps": {"choices": [12, 16]}, "ppo.batch_size": {"choices": [36, 32]}}
    settings = {"sampler": "grid", "tunables": tunables}
    with pytest.raises(SweepError, match=r"all trials of the sweep failed, at last trial 3: .*NaN"):
        sweep_in(tmp_path, settings, train={"max_skipped_steps": 1, "max_rollbacks": 0}, optimizer={"lr": 1e37})
    errors = [trial.error for trial in trials_of(tmp_path)]
    assert ["does not divide" in error for error in errors] == [True, True, True, False]
    assert not (tmp_path / BEST).exists()


@pytest.mark.parametrize("file", ["config.yaml", DATABASE])
def test_a_directory_with_something_else_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("")
    with pytest.raises(RunDirectoryError, match=r"contains a (run|sweep without)"):
        sweep_in(tmp_path, {})


@pytest.mark.parametrize("what", ["deleted", "empty"])
def test_runs_that_the_database_does_not_have_are_never_mixed_with_new_ones(tmp_path: Path, what: str) -> None:
    config, sweep = read_settings(raw({}), {})
    settings = tmp_path / "other.yaml"
    write_settings(settings, {**config.model_dump(mode="json"), "sweep": sweep.model_dump(mode="json")})
    folder = tmp_path / "trials" / "0001"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("")
    if what != "deleted":
        (tmp_path / DATABASE).write_bytes(b"")
        shutil.copy(settings, tmp_path / SETTINGS)
    with pytest.raises(SweepError, match=r"trials/0001 is a trial that .*sweep\.db does not have"):
        sweep_in(tmp_path, {})
    assert folder.exists()


def test_a_trial_whose_run_was_deleted_is_never_started_again(tmp_path: Path) -> None:
    """It was running when the sweep was killed, and had evaluations."""
    settings = {"trials": 1}
    config, sweep = read_settings(raw(settings), {})
    write_settings(tmp_path / SETTINGS, {**config.model_dump(mode="json"), "sweep": sweep.model_dump(mode="json")})
    with Study(tmp_path / DATABASE, sweep) as study:
        study.report(study.begin().number, 64, 9.0)
    (tmp_path / "trials" / "0000").mkdir(parents=True)
    with pytest.raises(SweepError, match=r"trial 0 has evaluations in .*sweep\.db, but .*0000 has no run; restore it"):
        sweep_in(tmp_path, settings)


def test_the_help_lists_the_settings_of_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    output = capsys.readouterr().out
    assert "--sweep.tunables                   required" in output
    assert "--sweep.objective                  mean_reward" in output
    assert "--optimizer.lr                     0.0003 " in output


def test_a_metric_that_the_env_lacks_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sweep\.objective\.metric: these envs have no metric 'mean_rewrd'; did"):
        sweep_in(tmp_path, {"objective": "mean_rewrd"})
    assert not (tmp_path / "trials").exists()
