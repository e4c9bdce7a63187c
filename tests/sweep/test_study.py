"""Trials in a file: a study that was closed and opened again goes on as if it had not been."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SweepError
from surefoot.sweep.settings import SweepConfig
from surefoot.sweep.study import Study

TUNABLES = {
    "optimizer.lr": {"low": 1e-4, "high": 1e-2, "scale": "log"},
    "ppo.gamma": {"low": 0.9, "high": 0.999, "scale": "one_minus"},
    "ppo.epochs": {"low": 1, "high": 8, "integer": True},
    "policy.activation": {"choices": ["tanh", "relu"]},
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is such a place: every change of a database waits for the disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def config(**settings: Any) -> SweepConfig:
    return SweepConfig.model_validate({"tunables": TUNABLES, **settings})


def some_trials(path: Path, sweep: SweepConfig, count: int, opened: int) -> list[dict[str, Any]]:
    """The values of trials whose objective is their gamma; the file is closed and opened between them."""
    values = []
    for _ in range(opened):
        with Study(path, sweep) as study:
            for _ in range(count // opened):
                trial = study.begin()
                study.complete(trial.number, trial.values["ppo.gamma"], [0.0], 1, 1.0)
                values.append(trial.values)
    return values


def test_opened_again_the_sampler_chooses_the_same(folder: Path) -> None:
    at_once = some_trials(folder / "one.db", config(), 12, 1)
    assert some_trials(folder / "two.db", config(), 12, 2) == at_once
    assert len({str(values) for values in at_once}) == 12
    assert some_trials(folder / "other.db", config(seed=1), 1, 1) != at_once[:1]
    for values in at_once:
        assert list(values) == list(TUNABLES)
        assert 0.9 <= values["ppo.gamma"] <= 0.999
        assert values["ppo.epochs"] in range(1, 9)
    with Study(folder / "one.db", config()) as study:
        best, shares = study.best(), study.importances()
    assert best is not None
    assert best.objective == max(values["ppo.gamma"] for values in at_once)
    assert next(iter(shares)) == "ppo.gamma"


def test_wanted_values_are_those_of_the_trial(folder: Path) -> None:
    wanted = {"optimizer.lr": 3e-4, "ppo.gamma": 0.99, "ppo.epochs": 2, "policy.activation": "relu"}
    with Study(folder / "sweep.db", config()) as study:
        assert study.begin(wanted).values == wanted
        assert study.begin({"ppo.gamma": 0.97}).values["ppo.gamma"] == 0.97


def test_a_grid_is_covered_exactly_once() -> None:
    tunables = {"ppo.epochs": {"choices": [1, 2, 3]}, "policy.activation": {"choices": ["tanh", "relu"]}}
    grid = config(sampler="grid", tunables=tunables)
    points = [tuple(grid.grid_point(index).values()) for index in range(grid.num_trials)]
    assert sorted(points) == sorted((epochs, name) for epochs in (1, 2, 3) for name in ("tanh", "relu"))


def test_a_trial_that_was_killed_without_values_is_not_counted(folder: Path) -> None:
    with Study(folder / "whole.db", config()) as study:
        whole = [study.begin().values for _ in range(2)]
    with Study(folder / "sweep.db", config()) as study:
        first = study.begin()
        study._study.ask()  # its values would come now
    with Study(folder / "sweep.db", config()) as study:
        study.discard_torn()
        assert [trial.number for trial in study.trials()] == [0]
        assert [first.values, study.begin().values] == whole
        assert [trial.state for trial in study.trials()] == ["running", "running"]


def test_pruned_and_failed_trials_stay_so(folder: Path) -> None:
    sweep = config(pruner="median", objective={"time_to": {"score": 100}})
    with Study(folder / "sweep.db", sweep) as study:
        for _ in range(5):
            number = study.begin().number
            study.report(number, 64, 50.0)
            study.complete(number, 64.0, [64.0], 64, 1.0)
        good, bad, broken = (study.begin().number for _ in range(3))
        study.report(good, 64, 90.0)
        study.report(bad, 64, 10.0)
        assert not study.should_prune(good)  # a high score is good, although fewer steps are
        assert study.should_prune(bad)
        study.prune(bad)
        study.fail(broken, "NaN")
    with Study(folder / "sweep.db", sweep) as study:
        trials = study.trials()
        assert [trials[number].state for number in (good, bad, broken)] == ["running", "pruned", "fail"]
        assert (trials[bad].evaluations, trials[broken].error) == (((64, 10.0),), "NaN")
        assert study.best() == trials[0]


def test_a_file_that_is_not_a_database_is_named(folder: Path) -> None:
    (folder / "sweep.db").write_text("something else " * 100)
    with pytest.raises(SweepError, match=r"sweep\.db cannot be read or written .* is not a database"):
        Study(folder / "sweep.db", config())


def test_a_full_disk_is_a_typed_error(folder: Path) -> None:
    (folder / "sweep.db").symlink_to("/dev/full")
    with pytest.raises(SweepError, match="cannot be read or written"):
        Study(folder / "sweep.db", config())


def test_finals_choose_the_best(folder: Path) -> None:
    with Study(folder / "sweep.db", config(objective={"time_to": {"score": 1}})) as study:
        for steps in (100.0, 200.0, 300.0):
            study.complete(study.begin().number, steps, [steps], 1, 1.0)
        assert [trial.number for trial in study.ranked()] == [0, 1, 2]
        study.keep_finals({0: [250.0, 150.0], 1: [190.0, 170.0]})
        best = study.best()
        assert best is not None
        assert (best.number, best.final, best.objective) == (1, 180.0, 200.0)
        study.keep_finals({})
        assert study.best() == study.ranked()[0]


ODD = {
    "an objective that is not a number": "update trial_values set value = 'high'",
    "no objective": "update trial_values set value = null, value_type = 'FINITE'",
    "an infinite objective": "update trial_values set value = null, value_type = 'INF_POS'",
    "objectives deleted": "delete from trial_values",
    "an evaluation that is not finite": "update trial_intermediate_values set intermediate_value = 9e999",
    "an evaluation that is text": "update trial_intermediate_values set intermediate_value = 'x'",
    "a parameter of another name": "update trial_params set param_name = 'ppo.alpha' where param_name = 'ppo.epochs'",
    "a parameter that is text": "update trial_params set param_value = 'x'",
    "a choice that does not exist": "update trial_params set param_value = 7 where param_name = 'policy.activation'",
    "a distribution that is not JSON": "update trial_params set distribution_json = '{'",
    "another state": "update trials set state = 'DONE'",
    "no number": "update trials set number = null",
    "a result of another shape": "update trial_user_attributes set value_json = '[1]'",
    "a result that is not JSON": "update trial_user_attributes set value_json = '{'",
    "nested results": """update trial_user_attributes set value_json = '{"seconds": {"a": null}}'""",
    "finals of another shape": "update study_user_attributes set value_json = '[1]'",
    "finals of text": """update study_user_attributes set value_json = '{"0": ["x"]}'""",
    "no such table": "drop table trial_params",
    "another direction": "update study_directions set direction = 'SIDEWAYS'",
    "another study": "update studies set study_name = 'other'",
}


@pytest.mark.parametrize("what", ODD)
def test_odd_values_in_the_file_are_typed_errors(folder: Path, what: str) -> None:
    """Whatever a study cannot use is refused in one line; nothing odd is returned."""
    path = folder / "sweep.db"
    some_trials(path, config(), 2, 1)
    with Study(path, config()) as study:
        study.report(study.begin().number, 64, 0.5)
        study.keep_finals({0: [1.0]})
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(ODD[what])
    if what == "another study":  # a new one, which does not know the runs in the folder
        with Study(path, config()) as study:
            assert study.numbers() == set()
        return
    with pytest.raises(SweepError) as refused:
        read_all(path)
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)


def read_all(path: Path) -> None:
    with Study(path, config()) as study:
        study.numbers()
        study.discard_torn()
