"""`surefoot report` on real runs."""

import re
from pathlib import Path

import pytest

from tests.cli.processes import start, surefoot
from tests.cli.runs import TINY, train

pytestmark = pytest.mark.xdist_group("report")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Two seeds, and one run with another learning rate, evaluated twice each."""
    folder = tmp_path_factory.mktemp("report")
    settings = {"seed1": ("--seed", 1), "seed2": ("--seed", 2), "fast": ("--optimizer.lr", 0.01)}
    for name, own in settings.items():
        evaluation = ("--train.eval_every", 64, "--train.eval_episodes", 2)
        train("CartPole-v1", folder / name, *TINY, *evaluation, "--steps", 128, *own)
    return [folder / name for name in settings]


def test_one_run_gets_its_page_in_its_folder(runs):
    out = surefoot("report", runs[0]).succeeded().out
    page = runs[0] / "report.html"
    assert out.startswith(f"report    {page}  (")
    text = page.read_text()
    assert "<h1>CartPole-v1</h1>" in text
    assert re.search(r"surefoot \S+, torch \S+ · written", text)
    assert "finished" in text
    assert page.stat().st_size < 2.5e6
    assert [path.name for path in runs[0].iterdir() if path.name.startswith(".")] == []


def test_several_runs_are_compared_where_it_is_asked_for(runs, tmp_path):
    page = tmp_path / "new" / "compared.html"
    surefoot("report", *runs, "--output", page).succeeded()
    text = page.read_text()
    assert "3 runs, 2 configurations" in text
    assert "lr 0.003 · 2 seeds" in text
    assert "<th>optimizer.lr</th><td>0.003</td><td>0.01</td>" in text


def test_several_runs_go_to_the_current_folder(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from surefoot.cli.main import main

    assert main(["report", *map(str, runs)]) == 0
    assert (tmp_path / "report.html").exists()


def test_a_report_is_renewed_and_nothing_else_is_overwritten(runs, tmp_path):
    page = tmp_path / "page.html"
    for _ in range(2):
        surefoot("report", runs[0], "--output", page).succeeded()
    page.write_text("my notes")
    assert "exists and is not a report" in surefoot("report", runs[0], "--output", page).refused()
    assert page.read_text() == "my notes"


def test_what_cannot_be_reported(runs, tmp_path):
    assert "pass at least one" in surefoot("report").refused()
    assert "does not exist; pass the run directory" in surefoot("report", tmp_path / "nothing").refused()
    assert "no config.yaml" in surefoot("report", tmp_path).refused()
    assert "no config.yaml" in surefoot("report", runs[0], tmp_path).refused()
    assert "is a directory" in surefoot("report", runs[0], "--output", tmp_path).refused()
    (tmp_path / "file").write_text("")
    assert "cannot write" in surefoot("report", runs[0], "--output", tmp_path / "file" / "page.html").refused()


def test_a_run_that_goes_on_and_then_is_killed(tmp_path):
    run = tmp_path / "run"
    going = start("train", "CartPole-v1", "--run-dir", run, *TINY, "--steps", 10_000_000)
    metrics = run / "metrics.jsonl"
    going.wait_until(lambda: metrics.exists() and metrics.stat().st_size > 0)
    surefoot("report", run).succeeded()
    assert 'class="status running">running' in (run / "report.html").read_text()
    going.send(9)
    assert going.wait().code == -9
    surefoot("report", run).succeeded()
    assert 'class="status stopped">stopped' in (run / "report.html").read_text()


def test_help_names_the_options():
    finished = surefoot("report", "--help").succeeded()
    assert "--output" in finished.out
