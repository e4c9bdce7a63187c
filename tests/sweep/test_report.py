"""The page about a sweep: in a browser, at its beginning, and with every kind of trial."""

from pathlib import Path

import pytest
import yaml

from surefoot.cli.main import main
from surefoot.sweep.directory import DATABASE, SETTINGS
from surefoot.sweep.report import sweep_page
from surefoot.sweep.settings import read_settings
from surefoot.sweep.study import Study
from tests.inspection.report.browser import probe
from tests.inspection.report.test_page import LOOK
from tests.sweep.sweeps import LR, raw

pytestmark = pytest.mark.xdist_group("browser")

TUNABLES = {
    **LR,
    "ppo.gamma": {"low": 0.9, "high": 0.999, "scale": "one_minus"},
    "policy.activation": {"choices": ["tanh", "relu"]},
}


def write_sweep(folder: Path, complete: int) -> Path:
    """A finished trial for each score, then a pruned, a failed and a running one."""
    settings = raw({"tunables": TUNABLES, "pruner": "median", "seeds": 2})
    (folder / SETTINGS).write_text(yaml.safe_dump(settings))
    with Study(folder / DATABASE, read_settings(settings, {})[1]) as study:
        for score in range(complete):
            number = study.begin({"policy.activation": ("tanh", "relu")[score % 2]}).number
            study.report(number, 64, score / 2)
            study.complete(number, float(score), [score - 1.0, score + 1.0], 512, 3.0)
        if complete:
            pruned, failed, _ = (study.begin().number for _ in range(3))
            study.report(pruned, 64, -1.0)
            study.prune(pruned)
            study.fail(failed, "<b>NaN</b>")
    return folder


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    page = sweep_page(write_sweep(tmp_path, complete=5))
    found = probe(page, tmp_path, LOOK)
    titles = ["Best settings", "History", "Importance", "Values", "Objective by setting", "Evaluations", "Trials"]
    assert found["headings"] == titles
    assert found["plots"] == found["svgs"] == 4 + len(TUNABLES)
    assert (found["empty"], found["invalid"]) == ([], [])
    assert found["wider"] <= 0
    assert "8 of 20 trials (5 finished, 1 pruned, 1 failed, 1 running)" in found["text"]
    assert "Trial 4: 4" in found["text"]
    assert f"surefoot train --config {tmp_path / 'best.yaml'}" in found["text"]
    assert "<b>NaN</b>" in found["text"]


def test_a_sweep_that_has_just_begun_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_sweep(tmp_path, complete=0)
    assert main(["report", str(tmp_path)]) == 0
    assert "No trial has finished yet" in (tmp_path / "report.html").read_text()
    assert main(["report", str(tmp_path), str(tmp_path / "other")]) == 2
    assert "is a sweep; its report is about one directory" in capsys.readouterr().err
