"""The run of a trial: repeatable, resumable, and stopped once its score is reached."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import NonFiniteError
from surefoot.sweep.settings import SweepConfig
from surefoot.sweep.sweep import objective_of
from surefoot.sweep.trial import train_trial
from tests.sweep.sweeps import LR, RUN


def arguments(directory: Path, target: float | None = None, **train: Any) -> dict[str, Any]:
    config = {**RUN, "train": {**RUN["train"], "checkpoint_every": 64, **train}}
    return {"directory": str(directory), "config": config, "episodes": 2, "target": target}


def steps_and_scores(result: dict[str, Any]) -> list[tuple[float, float]]:
    return [(step, score) for step, _, score in result["evaluations"]]


def test_a_trial_that_was_stopped_goes_on_with_its_evaluations(tmp_path: Path) -> None:
    whole = train_trial(arguments(tmp_path / "whole"), lambda progress: None)
    assert [step for step, _ in steps_and_scores(whole)] == [64, 128, 192, 256]
    said: list[dict[str, Any]] = []

    def say(progress: dict[str, Any]) -> None:
        said.append(progress)
        if progress["step"] == 128:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(SystemExit) as raised:
        train_trial(arguments(tmp_path / "stopped"), say)
    assert raised.value.code == 143
    resumed = train_trial(arguments(tmp_path / "stopped"), said.append)
    assert steps_and_scores(resumed) == steps_and_scores(whole)
    assert [progress["step"] for progress in said] == [0, 64, 128, 128, 192, 256]
    again = train_trial(arguments(tmp_path / "stopped"), said.append)
    assert again == resumed
    assert len(said) == 6  # nothing was trained again


def test_a_reached_score_ends_the_run(tmp_path: Path) -> None:
    result = train_trial(arguments(tmp_path, target=1.0), lambda progress: None)
    assert [step for step, _ in steps_and_scores(result)] == [64]
    assert result["steps"] == 64
    assert train_trial(arguments(tmp_path, target=1.0), lambda progress: None) == result


def test_weights_that_are_not_finite_fail_the_trial(tmp_path: Path) -> None:
    wild = arguments(tmp_path, max_skipped_steps=1, max_rollbacks=0)
    wild["config"] = {**wild["config"], "optimizer": {"lr": 1e37}}
    with pytest.raises(NonFiniteError):
        train_trial(wild, lambda progress: None)


@pytest.mark.parametrize(
    ("time_to", "objective"),
    [
        (None, 480.0),
        ({"score": 475}, 128.0),
        ({"score": 475, "unit": "seconds"}, 0.2),
        ({"score": 500}, 2 * 256.0),
        ({"score": 500, "unit": "seconds"}, 2 * 0.4),
    ],
)
def test_what_the_objective_of_a_run_is(time_to: dict[str, Any] | None, objective: float) -> None:
    """The first evaluation that reaches a score counts; one that is never reached counts as twice the run."""
    result = {"evaluations": [[64, 0.1, 9.0], [128, 0.2, 476.0], [192, 0.3, 480.0]], "seconds": 0.4}
    sweep = SweepConfig.model_validate({"tunables": LR, "objective": {"time_to": time_to}})
    assert objective_of(sweep, result, total=256) == objective
