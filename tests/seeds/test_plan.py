"""Which seeds a folder has, and what it refuses."""

from pathlib import Path

import pytest

from surefoot.errors import ConfigError, RunDirectoryError
from surefoot.inspection.seeds_folder import runs_in, runs_of
from surefoot.machine.cores import available_cores
from surefoot.seeds.plan import MOST_SEEDS, new_plan, parse_seeds, read_plan
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config


def config(**settings: object) -> Config:
    return build_config({"env.id": "CartPole-v1", "train.steps": 1000, **settings})


def test_lists_and_ranges():
    assert parse_seeds("1,2,3") == (1, 2, 3)
    assert parse_seeds("1-5") == (1, 2, 3, 4, 5)
    assert parse_seeds("7, 1-3, 2") == (7, 1, 2, 3)
    assert parse_seeds("0") == (0,)


@pytest.mark.parametrize("text", ["", "1,", "a", "-1", "5-1", "1..3", "1.5", f"0-{MOST_SEEDS}", str(2**63)])
def test_what_is_no_list_of_seeds(text):
    with pytest.raises(ConfigError, match="--seeds: "):
        parse_seeds(text)


def test_a_folder_keeps_its_settings_and_gets_further_seeds(tmp_path):
    plan = new_plan(tmp_path / "seeds", config(), (1, 2))
    plan.write()
    more = new_plan(tmp_path / "seeds", config(**{"log.console": "off"}), (2, 3))
    assert more.seeds == (1, 2, 3)
    assert more.config == plan.config == read_plan(tmp_path / "seeds").config
    assert [more.config_of(seed).train.seed for seed in more.seeds] == [1, 2, 3]


def test_seeds_of_other_settings_are_not_mixed(tmp_path):
    new_plan(tmp_path / "seeds", config(), (1,)).write()
    with pytest.raises(RunDirectoryError, match=r"another train\.steps, optimizer\.lr|another optimizer\.lr, train"):
        new_plan(tmp_path / "seeds", config(**{"optimizer.lr": 0.5, "train.steps": 2}), (1,))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("")
    with pytest.raises(RunDirectoryError, match="contains a run"):
        new_plan(tmp_path / "run", config(), (1,))


def test_seeds_without_their_settings_are_not_mixed_with_new_ones(tmp_path):
    (tmp_path / "seed_7").mkdir()
    with pytest.raises(RunDirectoryError, match=r"has seed_7, but no seeds\.yaml; restore it"):
        new_plan(tmp_path, config(), (1,))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": {}}', '{"1": []}', '{"1": {"wanted": 1024}}', "[" * 3000, '{"9": {}}']
)
def test_results_that_were_damaged_are_asked_for_again(tmp_path, text):
    plan = new_plan(tmp_path, config(**{"train.steps": 1024}), (1,))
    plan.write()
    (tmp_path / "results.json").write_text(text)
    assert plan.results() == {}
    plan.keep({1: {"step": 1024, "wanted": 1024, "reason": ""}})
    assert list(plan.results()) == [1]


def test_resume_applies_only_what_a_resumed_run_can_change(tmp_path):
    new_plan(tmp_path, config(), (1,)).write()
    assert read_plan(tmp_path, {"train.steps": 5000}).config.train.steps == 5000
    with pytest.raises(ConfigError, match=r"policy\.hidden: cannot change on resume"):
        read_plan(tmp_path, {"policy.hidden": [3]})


@pytest.mark.parametrize("seeds", ["", "seeds: 3", "seeds: [a]", "seeds: []", "seeds: [true]"])
def test_a_file_that_was_edited(tmp_path: Path, seeds: str):
    (tmp_path / "seeds.yaml").write_text(f"preset: none\n{seeds}\n")
    with pytest.raises(ConfigError, match="must be a list of numbers"):
        read_plan(tmp_path)


def test_the_cores_are_divided(tmp_path):
    cores = available_cores()
    many = new_plan(tmp_path / "many", config(), tuple(range(4 * cores)))
    assert (many.slots, many.config.train.threads, many.config.rollout.workers) == (cores, 1, 1)
    alone = new_plan(tmp_path / "alone", config(), (1,))
    assert (alone.slots, alone.config.train.threads) == (1, cores)
    asked = new_plan(tmp_path / "asked", config(**{"train.threads": 2 * cores}), (1, 2))
    assert (asked.slots, asked.config.train.threads) == (1, 2 * cores)


def test_finished_seeds_are_those_of_the_same_length(tmp_path):
    plan = new_plan(tmp_path, config(), (1, 2))
    assert plan.results() == {}
    plan.keep({1: {"step": 1024, "wanted": 1000, "reason": ""}})
    assert list(plan.results()) == [1]
    plan.write()
    assert read_plan(tmp_path, {"train.steps": 5000}).results() == {}
    (tmp_path / "results.json").write_text("[1]")
    assert plan.results() == {}


def test_runs_in_a_folder_are_sorted_by_seed(tmp_path):
    (tmp_path / "seeds.yaml").write_text("")
    for name in ("seed_10", "seed_9", "seed_x", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text("{}")
    (tmp_path / "seed_11").mkdir()
    (tmp_path / "seed_11" / "metrics.jsonl").touch()
    assert [path.name for path in runs_in(tmp_path)] == ["seed_9", "seed_10"]
    assert runs_in(tmp_path / "other") == [tmp_path / "other"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "seeds.yaml").touch()
    with pytest.raises(RunDirectoryError, match=r"no run in .* has records yet"):
        runs_of([tmp_path / "empty"])
