"""What `benchmarks.time_to_score` times."""

import json
import sys

import numpy as np
import pytest

from benchmarks import time_to_score
from benchmarks.time_to_score import EVERY, Stopwatch, evaluate, run_surefoot, summary, table


def balance(obs):
    """A hand-written controller that keeps the pole up."""
    return (obs @ np.array([0.1, 0.5, 10.0, 2.0]) > 0).astype(np.int64)


def test_an_evaluation_plays_every_episode_once() -> None:
    assert evaluate(balance) > 400
    assert evaluate(lambda obs: np.zeros(len(obs), dtype=np.int64)) == pytest.approx(9.4, abs=0.5)


def test_evaluations_are_due_every_so_often_and_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time_to_score.time, "perf_counter", lambda: now[0])
    scores = iter([480.0, 100.0, 490.0, 475.0, 500.0])

    def slow(act):
        now[0] += 50
        return next(scores)

    monkeypatch.setattr(time_to_score, "evaluate", slow)
    watch = Stopwatch()
    watch.begin()
    assert not watch.is_done(EVERY - 1, balance)
    assert watch.curve == []
    done = []
    for count in range(1, 6):
        now[0] += 1
        done.append(watch.is_done(count * EVERY + 5, balance))
    assert done == [False, False, False, False, True]
    result = watch.result()
    assert (result["seconds"], result["steps"]) == (1.0, EVERY + 5)
    assert (result["lasting_seconds"], result["lasting_steps"]) == (3.0, 3 * EVERY + 5)
    assert [point[2] for point in result["curve"]] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_two_good_evaluations_at_the_end_do_not_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_to_score, "evaluate", lambda act: 500.0)
    watch = Stopwatch()
    watch.begin()
    assert not any([watch.is_done(EVERY, balance), watch.is_done(2 * EVERY, balance)])
    assert watch.result()["lasting_seconds"] is None
    assert watch.result()["seconds"] is not None


def test_a_run_of_the_preset() -> None:
    result = run_surefoot(0, 1, {"train.steps": 2048, "ppo.epochs": 1})
    assert [point[0] for point in result["curve"]] == [1024, 2048]
    assert result["lasting_seconds"] is None
    assert result["config"]["env"]["id"] == "CartPole-v1"


def test_stable_baselines3_is_evaluated_after_its_updates() -> None:
    pytest.importorskip("stable_baselines3")
    result = time_to_score.run_sb3(0, 1, {**time_to_score.zoo(), "n_epochs": 1}, 8, 2048)
    assert [point[0] for point in result["curve"]] == [1024, 2048]


def test_the_load_of_a_run_is_measured_where_it_runs(monkeypatch, capsys) -> None:
    """The process that started it would take its CPU time for that of others, because it has ended by then."""
    monkeypatch.setitem(time_to_score.SIDES, "surefoot", lambda seed, threads, settings: {"seconds": seed, **settings})
    monkeypatch.setattr(sys, "argv", ["time_to_score", "--run", "surefoot", "--seed", "3", "--set", "ppo.epochs=1"])
    time_to_score.main()
    result = json.loads(capsys.readouterr().out)
    assert 0 <= result.pop("others_share") <= 1
    assert result == {"seconds": 3, "ppo.epochs": "1"}


def test_the_table_names_runs_that_failed() -> None:
    lasting = {"lasting_seconds": None, "lasting_steps": None}
    runs = [
        {"side": "surefoot", "seconds": 1.0, "steps": 10_000, "lasting_seconds": 4.0, "lasting_steps": 20_000},
        {"side": "surefoot", "seconds": 3.0, "steps": 12_000, **lasting},
        {"side": "sb3-zoo", "seconds": None, "steps": None, **lasting},
    ]
    found = summary(runs)
    assert found["surefoot"]["seconds"] == [2.0, 1.0, 3.0]
    facts = {"processor": "p", "cores": 2, "memory_gb": 1, "python": "3", "versions": {}}
    text = table({"command": "c", "machine": facts, "load": "quiet", "summary": found, "runs": runs})
    assert "| first | 2 of 2 | 2.00 (1.00 to 3.00) | 11,000 (10,000 to 12,000) | 1.00, 3.00 |" in text
    assert "| lasting | 1 of 2 | 4.00 (4.00 to 4.00) | 20,000 (20,000 to 20,000) | 4.00, not reached |" in text
    assert "| first | 0 of 1 | - | - | not reached |" in text
