"""Histograms of returns with the tail marked, and the table of figures."""

import json
import re

import numpy as np
import pytest

from surefoot.inspection.evaluation_record import read_evaluations
from surefoot.inspection.report.page import report_page
from surefoot.inspection.report.returns import MOST_RUNS, bins_of, return_charts, return_table, shown_evaluations
from surefoot.inspection.report.run_groups import group_runs
from surefoot.statistics.risk import cvar
from tests.inspection.report.test_tables import rows
from tests.inspection.report.written_runs import records, write_evaluations, write_run

NORMAL = np.random.default_rng(0).normal(100, 20, 200).tolist()


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("count", [2, 10, 41, 200])
def test_bins_hold_every_episode_and_the_tail_is_left_of_the_var(alpha, count):
    rewards = NORMAL[:count]
    var = np.quantile(rewards, alpha)
    bins = bins_of(rewards, alpha, var)
    assert bins.tail.sum() + bins.rest.sum() == pytest.approx(count)
    assert bins.tail.sum() == pytest.approx(alpha * count)
    assert bins.edges[0] <= min(rewards) + 1e-9
    assert bins.edges[-1] >= max(rewards) - 1e-9
    assert 10 <= len(bins.tail) <= 31
    is_left = bins.edges[:-1] < var - 1e-9
    assert bins.rest[is_left].sum() < 1, "at most the fraction of one episode"
    assert bins.tail[~is_left].sum() < 1


def test_equal_returns_are_one_bin():
    bins = bins_of([500.0] * 10, 0.05, 500.0)
    assert (bins.edges.tolist(), bins.tail.tolist(), bins.rest.tolist()) == ([495.0, 505.0], [0.5], [9.5])


def test_a_tie_at_the_var_is_part_of_the_tail_only_by_its_share():
    bins = bins_of([-100.0] * 12 + [200.0] * 48, 0.05, -100.0)
    assert (bins.tail[0], bins.rest[0]) == (3.0, 9.0)


@pytest.fixture
def run(tmp_path):
    """Evaluated at three steps; by CVaR, the best is the second."""
    lines = records(30)
    for index, value in ((9, 3.0), (19, 7.0), (29, 5.0)):
        lines[index]["eval/cvar"] = value
    run = write_run(tmp_path / "run", lines, {"train.best_metric": "cvar", "train.cvar_alpha": 0.1})
    write_evaluations(run.path, {2560: [1.0, 2.0], 5120: [3.0] * 5, 7680: NORMAL})
    return run


def test_the_last_and_the_best_evaluation_are_shown(run):
    evaluations = shown_evaluations(group_runs([run]))
    assert [(shown.role, shown.episodes.step) for shown in evaluations] == [("Last", 7680), ("Best", 5120)]
    last, best = return_charts(evaluations)
    assert (last.title, last.note) == ("Last evaluation, step 7,680", "run, 200 episodes")
    assert best.title == "Best evaluation, step 5,120"
    lines, labels = last.layout["shapes"], last.layout["annotations"]
    value, var = float(cvar(NORMAL, 0.1)), np.quantile(NORMAL, 0.1)
    assert [line["x0"] for line in lines] == pytest.approx([value, var])
    assert [label["text"] for label in labels] == [f"CVaR 10%: {value:.2f}", f"VaR 10%: {var:.2f}"]
    tail, rest = last.traces
    assert tail["marker"]["color"] != rest["marker"]["color"]
    assert (sum(tail["y"]), sum(rest["y"])) == (pytest.approx(20), pytest.approx(180))
    assert all(x < var for x, y in zip(tail["x"], tail["y"], strict=True) if y)


def test_figures_with_their_intervals_are_in_the_table(run):
    evaluations = shown_evaluations(group_runs([run]))
    text = return_table(evaluations)
    head, last, best = rows(text.replace("&nbsp;", " "))
    assert [" ".join(cell) for cell in head] == [
        *("evaluation", "mean", "CVaR 10%", "5%", "25%", "50%", "75%", "95%", "worst", "mean / std")
    ]
    found = evaluations[0].risk.cvar
    assert last[2] == [f"{found.value:.2f}", f"{found.low:.2f}", "to", f"{found.high:.2f}"]
    assert last[-2] == [f"{min(NORMAL):.2f}", "episode", str(np.argmin(NORMAL))]
    assert best[1] == ["3.00", "3.00", "to", "3.00"]
    assert best[-1] == ["&ndash;"]
    assert re.findall(r"Note: (.*?)</p>", text) == [
        "the CVaR of the worst 10% of 5 episodes is the worst episode; evaluate at least 10 episodes."
    ]


def test_identical_episodes_have_a_note(run):
    line = {"step": 7680, "rewards": [3.0] * 10, "are_identical": True}
    (run.path / "evaluations.jsonl").write_text(json.dumps(line) + "\n")
    assert re.findall(r"Note: (.*?)</p>", return_table(shown_evaluations(group_runs([run])))) == [
        "run, last evaluation, step 7,680: all 10 episodes are identical, step by step: the env ignores its seed, or is"
        " deterministic for this policy; intervals and standard deviations mean nothing."
    ]


def test_wins_have_a_column_if_there_are_any(run):
    write_evaluations(run.path, {7680: [1.0, 2.0, 3.0, 4.0]}, [1.0, 0.0, None, 1.0])
    head, last = rows(return_table(shown_evaluations(group_runs([run]))))
    assert head[-1] == ["win", "rate"]
    assert last[-1][0] == "0.67"


def test_runs_with_different_shares_say_so(run, tmp_path):
    other = write_run(tmp_path / "other", records(30))
    write_evaluations(other.path, {7680: NORMAL})
    head, *lines = rows(return_table(shown_evaluations(group_runs([run, other]))).replace("&nbsp;", " "))
    assert head[2] == ["CVaR"]
    assert [line[2][-1] for line in lines] == ["10%", "10%", "5%"]


def test_a_resumed_run_replaces_what_came_after_its_checkpoint(run):
    with (run.path / "evaluations.jsonl").open("a") as file:
        file.write(json.dumps({"step": 5120, "rewards": [9.0]}) + "\n" + '{"step": 99')
    assert {step: found.rewards for step, found in read_evaluations(run.path).items()} == {
        2560: (1.0, 2.0),
        5120: (9.0,),
    }


def test_only_the_first_runs_have_histograms(tmp_path):
    runs = [write_run(tmp_path / f"run{number}", records(10)) for number in range(MOST_RUNS + 1)]
    for run in runs:
        write_evaluations(run.path, {2560: [1.0, 2.0]})
    evaluations = shown_evaluations(group_runs(runs))
    assert (len(evaluations), len(return_charts(evaluations))) == (MOST_RUNS + 1, MOST_RUNS)
    assert "Histograms are shown for the first 6 runs." in report_page(runs)


def test_runs_of_earlier_versions_have_no_returns(tmp_path):
    page = report_page([write_run(tmp_path / "run", records(20))])
    assert "<h2>Learning</h2>" in page
    assert "<h2>Returns</h2>" not in page
