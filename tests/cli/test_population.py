"""`surefoot population` from the command line."""

import json

import pytest
import yaml

from surefoot.cli.main import main
from tests.population.populations import small_raw


def test_train_resume_report_replay_and_evaluate(tmp_path, capsys):
    config, folder = tmp_path / "config.yaml", tmp_path / "population"
    config.write_text(yaml.safe_dump({"preset": "none", **small_raw(members=2)}))
    settings = ("--train.steps", "128", "--population.tunables.ppo.clip", "{low: 0.1, high: 0.3}")
    assert main(["population", str(config), "--run-dir", str(folder), *settings]) == 0
    assert "winner    member 0" in capsys.readouterr().out
    lines = [json.loads(line) for line in (folder / "population.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert 0.1 <= lines[0]["values"]["ppo.clip"] <= 0.3
    assert lines[0]["used"]["ppo.clip"] == lines[0]["values"]["ppo.clip"]
    assert main(["population", "resume", str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    assert "Lineage" in (folder / "report.html").read_text()
    assert main(["population", "replay", str(folder), "--run-dir", str(tmp_path / "run")]) == 0
    assert main(["evaluate", str(folder / "best.safetensors"), "--episodes", "2"]) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.yaml"], "cannot read the config file missing.yaml"),
        (["resume", "missing"], "is not the directory of a population"),
        (["replay", "missing"], "is not the directory of a population"),
    ],
)
def test_refused(arguments, told, capsys):
    assert main(["population", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_the_preset_is_a_valid_population():
    from surefoot.population.presets import population_presets
    from surefoot.population.settings import build_plan

    plan = build_plan(population_presets.load("market"))
    assert plan.population.members == 8
    assert len(plan.names) == 6
