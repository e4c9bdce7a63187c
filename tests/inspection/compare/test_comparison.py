"""Which runs are compared, by which scores, and what is said about them."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.compare.comparison import Comparison, compare, scaled, scales_of
from surefoot.inspection.compare.page import compare_page
from surefoot.inspection.compare.scores import Measure
from surefoot.inspection.compare.table import print_comparison, print_seeds
from surefoot.inspection.report.reported_run import ReportedRun
from tests.inspection.report.browser import probe
from tests.inspection.report.test_page import LOOK
from tests.inspection.report.written_runs import records, write_evaluations, write_run

pytestmark = pytest.mark.xdist_group("browser")


def run(folder: Path, scores: list[float], seed: int = 1, env: str = "CartPole-v1", **settings: object) -> ReportedRun:
    """A run that was evaluated so often, with these scores."""
    lines = records(1 + len(scores))
    for line, score in zip(lines[1:], scores, strict=True):
        line |= {"eval/mean_reward": score, "eval/std_reward": 1.0, "eval/cvar": score - 1}
    return write_run(folder, lines, {"env.id": env, "train.seed": seed, **settings})


def runs_of(folder: Path, scores: list[float], **settings: object) -> list[ReportedRun]:
    return [run(folder / f"{folder.name}{n}", [0.0, score], seed=n, **settings) for n, score in enumerate(scores)]


@pytest.fixture
def two(tmp_path) -> list[ReportedRun]:
    """Two learning rates, three seeds each."""
    return runs_of(tmp_path / "slow", [1, 2, 6]) + runs_of(tmp_path / "fast", [4, 5, 9], **{"optimizer.lr": 0.01})


def test_runs_that_differ_only_in_their_seed_form_a_group(two):
    found = compare(two, Measure())
    assert [side.name for side in found.sides] == ["lr 0.0003", "lr 0.01"]
    assert [side.scores for side in found.sides] == [{"CartPole-v1": [1, 2, 6]}, {"CartPole-v1": [4, 5, 9]}]
    assert found.by_task["CartPole-v1"]["lr 0.01"].mean == (6, 4, 9)
    (one,) = found.improvements
    # Of nine pairs, the slow one wins one: 6 over 4 and 5, so two.
    assert one.probability.value == pytest.approx(2 / 9)
    assert found.notes == []
    assert json.loads(json.dumps(found.to_json()))["improvement"][0]["over"] == "lr 0.01"


def test_names_say_what_belongs_together(two, tmp_path):
    other = run(tmp_path / "other", [70.0], env="Pendulum-v1")
    found = compare([*two, other], Measure(), names=["a"] * 5 + ["b", "a"])
    assert [(side.name, {task: len(own) for task, own in side.scores.items()}) for side in found.sides] == [
        ("a", {"CartPole-v1": 5, "Pendulum-v1": 1}),
        ("b", {"CartPole-v1": 1}),
    ]
    assert any("because they lack some: b" in note for note in found.notes)


def test_the_last_or_the_best_evaluation_counts(tmp_path):
    one = run(tmp_path / "run", [3.0, 8.0, 5.0])
    assert [Measure(which=which).of(one) for which in ("final", "best")] == [5, 8]
    assert Measure("cvar", "best").of(one) == 7
    assert Measure("-mean_reward", "best").of(one) == -3
    assert any("part of it is luck" in note for note in compare([one], Measure(which="best")).notes)


def test_an_evaluation_after_the_last_record_counts(tmp_path):
    one = run(tmp_path / "run", [3.0])
    write_evaluations(one.path, {256: [3.0], 512: [4.0, 8.0]})
    again = ReportedRun(one.path, one.config, one.records[:1], "run")
    assert Measure().of(again) == 6


def test_runs_without_a_score_are_named(tmp_path):
    bare, good = write_run(tmp_path / "bare", records(3)), run(tmp_path / "good", [1.0])
    with pytest.raises(RunDirectoryError, match=r"no evaluation was recorded in .*bare; .*train\.eval_episodes"):
        compare([bare, good], Measure())
    with pytest.raises(ConfigError, match=r"have no 'win_rate'.*\(mean_reward, std_reward, cvar\)"):
        compare([good], Measure("win_rate"))


def test_few_runs_say_what_that_means(two):
    (note,) = compare([two[0], *two[3:5]], Measure()).notes
    assert "lr 0.0003 has 1 on CartPole-v1, lr 0.01 has 2 on CartPole-v1" in note
    assert "Train at least 3 seeds" in note


def test_runs_of_different_lengths_are_noted(tmp_path):
    short, long = run(tmp_path / "short", [1.0]), run(tmp_path / "long", [1.0, 1.0], seed=2)
    assert any("512 to 768 steps" in note for note in compare([short, long], Measure()).notes)


def test_over_tasks_scores_need_a_common_scale(two, tmp_path):
    """Of each task, the lowest score of all runs counts 0 and the highest 1."""
    other = runs_of(tmp_path / "pend", [-100, -50], env="Pendulum-v1")
    other += runs_of(tmp_path / "pend2", [-75, 0], env="Pendulum-v1", **{"optimizer.lr": 0.01})
    plain = compare([*two, *other], Measure())
    assert plain.over_tasks == {}
    assert any("pass --normalize minmax" in note for note in plain.notes)
    assert [one.task for one in plain.improvements] == ["CartPole-v1", "Pendulum-v1", None]
    found = compare([*two, *other], Measure(), "minmax")
    assert found.scales == {"CartPole-v1": (1, 9), "Pendulum-v1": (-100, 0)}
    slow = found.over_tasks["lr 0.0003"]
    # Means of the tasks: (0 + 1/8 + 5/8) / 3 = 0.25 and (0 + 0.5) / 2 = 0.25.
    assert slow.mean.value == pytest.approx(0.25)
    file = tmp_path / "scores.yaml"
    file.write_text("CartPole-v1: [0, 10]\nPendulum-v1: [-200, 0]\n")
    found = compare([*two, *other], Measure(), str(file))
    assert found.over_tasks["lr 0.01"].mean.value == pytest.approx((0.6 + 0.8125) / 2)


def test_scales():
    assert scales_of("none", {"a": [1.0]}) is None
    assert scaled([1.0, 2.0, 3.0], (1.0, 3.0)) == [0, 0.5, 1]
    assert scaled([7.0, 7.0], (7.0, 7.0)) == [0.5, 0.5]


@pytest.mark.parametrize("text", ["A: [1, 1]", "A: [1]", "A: 3", "A: [x, 2]", "B: [0, 1]"])
def test_reference_scores_that_are_wrong(tmp_path, text):
    (tmp_path / "scores.yaml").write_text(text)
    with pytest.raises(ConfigError, match="--normalize: "):
        scales_of(str(tmp_path / "scores.yaml"), {"A": [1.0]})


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_table_fits(two, tmp_path, width):
    lonely = run(tmp_path / "lonely", [0.0, 3.0], **{"optimizer.lr": 0.5})
    shown = io.StringIO()
    print_comparison(compare([*two, lonely], Measure()), Console(file=shown, width=width))
    text = shown.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "CartPole-v1 · mean reward of the last evaluation" in text
    assert text.count("4.00 to 9.00") == 3
    assert text.count("one run") == 3
    assert "lr 0.0003 over lr 0.01" in text


def test_the_seeds_of_a_folder(tmp_path):
    folder = tmp_path / "seeds"
    for seed in (1, 2):
        run(folder / f"seed_{seed}", [10.0 * seed], seed=seed)
    (folder / "seeds.yaml").touch()
    shown = io.StringIO()
    print_seeds(folder, Console(file=shown, width=80))
    assert "   2  finished    512   23.99       20.00" in shown.getvalue()
    assert "seeds     2" in shown.getvalue()
    assert "few runs" in shown.getvalue()


def comparison_of_tasks(two, tmp_path) -> Comparison:
    other = runs_of(tmp_path / "pend", [-100, -50, -70], env="Pendulum-v1")
    return compare([*two, *other], Measure(), "minmax", ["slow"] * 3 + ["</b><i>fast"] * 3 + ["slow"] * 3)


def test_the_page_is_drawn_on_a_phone(two, tmp_path):
    found = probe(compare_page(comparison_of_tasks(two, tmp_path)), tmp_path, LOOK, width=500)
    assert found["problem"] == ""
    assert found["empty"] == found["invalid"] == []
    # Three figures for each task and over all, one pair on one task, evaluations and returns of both tasks.
    assert found["plots"] == found["svgs"] == 9 + 1 + 2 + 2
    assert found["wider"] <= 0
    assert found["headings"] == [
        *("Scores", "Intervals", "Probability of improvement", "Evaluation", "Learning", "Settings")
    ]
    assert "</b><i>fast" in found["text"]
