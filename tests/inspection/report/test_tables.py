"""The tables' words and numbers."""

import re

import pytest

from surefoot.inspection.report.run_groups import group_runs
from surefoot.inspection.report.tables import all_settings, differences_table, duration, number, summary_table
from tests.inspection.report.written_runs import records, write_run


def rows(html):
    """The text of every cell, by row."""
    found = re.findall(r"<tr[^>]*>(.*?)</tr>", html, flags=re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.DOTALL) for row in found]
    return [[re.sub(r"<[^>]*>", " ", cell).split() for cell in row] for row in cells]


def test_a_row_a_run_and_one_for_the_group(tmp_path):
    runs = [write_run(tmp_path / f"seed{seed}", records(20, seed), {"train.seed": seed}) for seed in (1, 2)]
    head, group, first, second = rows(summary_table(group_runs(runs)))
    assert [" ".join(cell) for cell in head][:4] == ["run", "status", "final return", "best evaluation"]
    assert group[0] == ["CartPole-v1", "mean", "of", "2", "runs"]
    assert group[1] == ["2", "of", "2", "finished"]
    assert group[3] == ["120.5", "120.0", "to", "121.0"]
    assert (first[0], second[0]) == (["seed1", "seed", "1"], ["seed2", "seed", "2"])
    assert first[3:] == [["120.0", "±", "5.0", "at", "step", "5,120"], ["5,120"], ["10.0", "s"], ["512"], ["none"]]


def test_a_run_that_stopped_says_where(tmp_path):
    lines = records(5)
    lines[1]["warn/kl_high"] = lines[3]["warn/kl_high"] = 1.0
    run = write_run(tmp_path / "run", lines, {"train.steps": 12_800})
    (_, row) = rows(summary_table(group_runs([run])))
    assert row[1] == ["stopped", "at", "1,280", "of", "12,800", "(10%)"]
    assert row[3] == ["&ndash;"]
    assert row[7] == ["2", "KL", "high", "&times;2"]


def test_only_differences_are_listed(tmp_path):
    settings = ({"train.seed": 1}, {"train.seed": 2}, {"train.seed": 1, "optimizer.lr": 0.01})
    runs = [write_run(tmp_path / f"run{index}", records(3), found) for index, found in enumerate(settings)]
    _, *found = rows(differences_table(group_runs(runs)))
    assert found == [[["optimizer.lr"], ["0.0003"], ["0.01"]], [["train.seed"], ["1,", "2"], ["1"]]]
    assert differences_table(group_runs(runs[:1])) == ""


def test_all_settings_are_there_and_collapsed(tmp_path):
    (group,) = group_runs([write_run(tmp_path / "run", records(3))])
    html = all_settings(group)
    assert html.startswith("<details><summary>")
    assert [["ppo.gamma"], ["0.99"]] in rows(html)


def test_names_and_values_are_escaped(tmp_path):
    run = write_run(tmp_path / "<b>run", records(3), {"env.id": "<i>&"})
    other = write_run(tmp_path / "other", records(3), {"env.id": "<u>"})
    groups = group_runs([run, other])
    html = summary_table(groups) + differences_table(groups) + all_settings(groups[0])
    assert not re.search(r"<(b>run|i>&|u>)", html)
    assert "&lt;b&gt;run" in html
    assert "&lt;i&gt;&amp;" in html


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "&ndash;"), (8.24, "8.2 s"), (59.96, "1 min 00 s"), (185, "3 min 05 s"), (3720, "1 h 02 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_numbers():
    assert [number(value) for value in (None, -1234.56, 0.04)] == ["&ndash;", "\N{MINUS SIGN}1,234.6", "0.0"]
