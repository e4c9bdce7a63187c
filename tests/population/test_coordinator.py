"""Whole populations: the same bits twice, interrupted anywhere, with members that fail, and what is refused."""

import json
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from surefoot.api import PPO
from surefoot.errors import ConfigError, DirectoryInUseError, PopulationError
from surefoot.inspection.run_record import read_run
from surefoot.population.display import SilentDisplay
from surefoot.population.log import Entry, Outcome, read_rounds
from surefoot.population.member import hash_of
from surefoot.population.page import population_page
from surefoot.population.replay import lineage, replay_winner
from surefoot.population.settings import build_plan
from surefoot.storage.folder_lock import take_lock
from surefoot.telemetry import names
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.inspection.report.browser import unpacked
from tests.population.populations import small_plan, small_raw, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A population that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder, small_plan())
    return folder


def log_of(folder: Path) -> bytes:
    return (folder / "population.jsonl").read_bytes()


def test_rounds_parents_and_values(whole):
    rounds = read_rounds(whole / "population.jsonl")
    assert [len(entries) for entries in rounds] == [3, 3, 3]
    assert [entry.step for entry in rounds[-1]] == [192] * 3
    replaced = [entry for entries in rounds[:-1] for entry in entries if entry.parent != entry.member]
    assert len(replaced) == 2
    for entries in rounds[:-1]:
        scores = [entry.score for entry in entries]
        loser = next(entry for entry in entries if entry.parent != entry.member)
        assert loser.score == min(scores)
        assert scores[loser.parent] == max(scores)
    for before, after in pairwise(rounds):
        for entry in before:
            assert after[entry.member].values == entry.next_values
            assert after[entry.member].used == pytest.approx(entry.next_values)
        assert len({entry.hash for entry in (*before, *after)}) == 6


def test_members_are_runs_whose_metrics_show_the_values_that_were_used(whole):
    rounds = read_rounds(whole / "population.jsonl")
    for member in range(3):
        run = read_run(whole / "members" / f"{member:02d}")
        rates = [rate for _, rate in run.series(names.LEARNING_RATE)]
        assert len(rates) == 6
        assert rates == [entries[member].values["optimizer.lr"] for entries in rounds for _ in range(2)]
        state = read_checkpoint(RunDirectory(run.path).saved()[0])
        assert hash_of(state["policy"]) == rounds[-1][member].hash


def test_the_best_policy_of_all_rounds_is_kept(whole):
    entries = [entry for found in read_rounds(whole / "population.jsonl") for entry in found]
    best = max(entry.score for entry in entries)
    weights = read_checkpoint(whole / "best.safetensors")["policy"]
    assert hash_of(weights) in {entry.hash for entry in entries if entry.score == best}
    assert PPO.load(whole / "best.safetensors").evaluate(episodes=1).rewards


class Interrupt(SilentDisplay):
    """Stops the coordinator at its n-th event."""

    def __init__(self, after: int) -> None:
        super().__init__(small_plan())
        self.left = after

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt

    def begin_round(self, number: int, choices: Any) -> None:
        self._count()

    def finished(self, member: int, outcome: Outcome) -> None:
        self._count()

    def decided(self, entries: Sequence[Entry]) -> None:
        self._count()


def test_a_coordinator_that_is_stopped_anywhere_continues_with_the_same_bits(whole, tmp_path):
    for after in (0, 1, 2, 4, 3, 1, 5, 2, 6):
        try:
            train(tmp_path, small_plan(), Interrupt(after))
            break
        except KeyboardInterrupt:
            pass
    train(tmp_path, small_plan(patience_s=5.0))
    assert log_of(tmp_path) == log_of(whole)
    before = log_of(whole)
    train(whole, small_plan())  # it is over: nothing happens
    assert log_of(whole) == before


def test_members_that_fail_take_over_a_good_one(tmp_path):
    raw = small_raw(start="config", values={"optimizer.lr": [1e-3, 9e-3, 9e-3]})
    raw["hooks"] = {"fail": {"kind": "tests.population.populations:FailAbove", "lr": 5e-3}}
    raw["population"]["tunables"] = {"optimizer.lr": {"low": 1e-4, "high": 1e-2, "factor": 1.1, "resample": 0.0}}
    train(tmp_path, build_plan(raw))
    first, second, _ = read_rounds(tmp_path / "population.jsonl")
    assert [entry.has_failed for entry in first] == [False, True, True]
    assert "hook 'fail' raised an exception in after_iteration: ValueError: too fast" in first[1].error
    assert [(entry.parent, entry.hash) for entry in first[1:]] == [(0, ""), (0, "")]
    assert not any(entry.has_failed for entry in second)
    assert [entry.step for entry in second] == [128] * 3


def test_if_all_fail_it_ends_with_an_error_and_can_be_tried_again(tmp_path):
    raw = small_raw()
    raw["hooks"] = {"fail": {"kind": "tests.population.populations:FailAbove", "lr": 1e-9}}
    for _ in range(2):
        with pytest.raises(
            PopulationError, match="all members failed in round 1; the first error: member 00: hook 'fail'"
        ):
            train(tmp_path, build_plan(raw))


def test_a_second_coordinator_is_refused(tmp_path):
    with take_lock(tmp_path), pytest.raises(DirectoryInUseError, match="is in use by process"):
        train(tmp_path, small_plan())


def test_other_settings_are_refused_in_the_same_directory(whole):
    with pytest.raises(PopulationError, match=r"with another population\.seed; use the same settings"):
        train(whole, small_plan(seed=5))


def test_the_objective_is_checked_before_anything_starts(tmp_path):
    with pytest.raises(ConfigError, match=r"population\.objective: these envs have no metric 'mean_rewrad'"):
        train(tmp_path / "new", small_plan(objective="mean_rewrad"))
    assert not (tmp_path / "new").exists()


def test_lower_is_better_with_a_minus(tmp_path):
    raw = small_raw(objective="-mean_ep_length", iterations=6, members=2)
    train(tmp_path, build_plan(raw))
    (entries,) = read_rounds(tmp_path / "population.jsonl")
    for entry in entries:
        assert entry.score < 0
        assert entry.interval[0] <= entry.score <= entry.interval[1]


def test_the_winner_is_replayed_as_one_run(whole, tmp_path):
    plan, ancestors = small_plan(), lineage(read_rounds(whole / "population.jsonl"))
    assert [entry.round for entry in ancestors] == [1, 2, 3]
    assert replay_winner(whole, plan, tmp_path / "run") == 0
    run = read_run(tmp_path / "run")
    rates = [rate for _, rate in run.series(names.LEARNING_RATE)]
    assert rates == [entry.values["optimizer.lr"] for entry in ancestors for _ in range(2)]
    assert [step for step, _ in run.series(names.LEARNING_RATE)] == [32, 64, 96, 128, 160, 192]
    final = (tmp_path / "run" / "checkpoints").glob("*")
    assert replay_winner(whole, plan, tmp_path / "run") == 0  # done already
    assert sorted(final) == sorted((tmp_path / "run" / "checkpoints").glob("*"))


def test_lineage_follows_parents():
    def entry(number: int, member: int, parent: int, score: float) -> Entry:
        return Entry(number, member, score, None, "", 0, {"x": 10 * number + member}, {}, parent, {})

    rounds = [
        [entry(1, 0, 0, 1), entry(1, 1, 0, 0)],
        [entry(2, 0, 1, 0), entry(2, 1, 1, 5)],
        [entry(3, 0, 0, 9), entry(3, 1, 1, 8)],
    ]
    assert [one.values["x"] for one in lineage(rounds)] == [10, 21, 30]


def test_the_page_shows_lineage_scores_and_values(whole):
    page = population_page(whole)
    for heading in ("Population on CartPole-v1", "Scores", "Lineage", "Values", "Changes"):
        assert f"{heading}</h" in page
    data = json.loads(unpacked(page, "data"))
    titles = {name: len(chart["traces"]) for name, chart in data["charts"].items()}
    assert list(titles.values()) == [3, 7, 3, 3, 3]  # one per member; the tree also has the winner and its lines
    for entry in (one for found in read_rounds(whole / "population.jsonl") for one in found):
        assert entry.score in data["charts"]["chart-0"]["traces"][entry.member]["y"]


def test_the_page_leads_to_the_replay(whole, tmp_path):
    population = shutil.copytree(whole, tmp_path / "population")
    assert "replayed" not in population_page(population)
    (population / "replay").mkdir()
    (population / "replay" / "config.yaml").touch()
    assert f"surefoot report {population / 'replay'}</code> writes its report" in population_page(population)
    (population / "replay" / "report.html").touch()
    assert '<a href="replay/report.html">its report</a>' in population_page(population)


def test_the_log_has_no_times(whole):
    for line in log_of(whole).splitlines():
        assert set(json.loads(line)) == {
            *("round", "member", "score", "interval", "hash", "step"),
            *("values", "used", "parent", "next_values", "error"),
        }
