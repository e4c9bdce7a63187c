"""A population without its log, or with a damaged one: decided again from the members' results, or refused."""

import json
import shutil
from pathlib import Path

import pytest

from surefoot.errors import PopulationError, RunDirectoryError
from tests.population.populations import small_plan, train

PLAN = small_plan()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("population") / "whole"
    train(folder, PLAN)
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def contents(folder: Path) -> dict[str, bytes]:
    """All files but the lock; links of best policies are followed."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("left", [None, 0, 1, 3, 4, 6, 8])
def test_a_deleted_or_shortened_log_is_decided_again_from_the_outcomes(whole: Path, copy: Path, left: int | None):
    """`left` lines of nine; None if the file is gone."""
    log = copy / "population.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.unlink()
    if left is not None:
        log.write_bytes(b"".join(lines[:left]))
    train(copy, PLAN)
    assert contents(copy) == contents(whole)


@pytest.mark.parametrize("number", [1, 5, 9])
@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "null", '{"round": 1}', "[" * 3000, '{"score": NaN}', "type", "nested", "nan", "parent"]
)
def test_the_advice_about_a_damaged_line_works(whole: Path, copy: Path, number: int, line: str):
    log = copy / "population.jsonl"
    lines = log.read_text().splitlines()
    entry = json.loads(lines[number - 1])
    odd = {
        "type": entry | {"round": "one"},
        "nested": entry | {"values": {"optimizer.lr": {"low": [1]}}},
        "nan": entry | {"score": float("nan")},
        "parent": entry | {"parent": 7},
    }
    lines[number - 1] = json.dumps(odd[line]) if line in odd else line
    log.write_text("\n".join(lines) + "\n")
    before = contents(copy)
    with pytest.raises(PopulationError, match="remove this line and all after it, and resume") as refused:
        train(copy, PLAN)
    assert "\n" not in str(refused.value)
    assert contents(copy) == before, "nothing is touched"
    log.write_text("".join(f"{one}\n" for one in lines[: number - 1]))
    train(copy, PLAN)
    assert contents(copy) == contents(whole)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "null", '{"score": "high"}', '{"step": -1}', '{"other": 1}'])
def test_an_outcome_that_is_damaged_is_named_and_its_evaluation_can_be_repeated(whole: Path, copy: Path, text: str):
    (copy / "population.jsonl").write_bytes(b"".join((whole / "population.jsonl").read_bytes().splitlines(True)[:6]))
    file = copy / "members" / "01" / "rounds" / "0003.json"
    file.write_text(text)
    with pytest.raises(PopulationError, match=r"0003\.json is damaged .*remove it and resume") as refused:
        train(copy, PLAN)
    assert "\n" not in str(refused.value)
    file.unlink()
    train(copy, PLAN)
    assert contents(copy) == contents(whole)


def test_without_log_and_outcomes_the_members_are_unchanged(copy: Path):
    (copy / "population.jsonl").unlink()
    (copy / "members" / "02" / "rounds" / "0002.json").unlink()
    before = contents(copy)
    with pytest.raises(
        PopulationError, match=r"lacks round 2 of 3, and .*0002\.json.* is missing; restore one of them"
    ):
        train(copy, PLAN)
    for member in (copy / "members").iterdir():
        shutil.rmtree(member / "rounds")
    with pytest.raises(PopulationError, match="lacks round 1 of 3"):
        train(copy, PLAN)
    kept = {name: data for name, data in before.items() if "rounds/" not in name}
    assert {name: data for name, data in contents(copy).items() if name in kept} == kept


def test_states_that_are_missing_are_named(copy: Path, whole: Path):
    lines = (copy / "population.jsonl").read_text().splitlines(keepends=True)
    (copy / "population.jsonl").write_text("".join(lines[:6]))
    for member in (copy / "members").iterdir():
        shutil.rmtree(member / "checkpoints")
        for file in (member / "rounds").glob("0003.*"):
            file.unlink()
    with pytest.raises(PopulationError, match=r"0002\.safetensors, from which member 00 continues, is missing"):
        train(copy, PLAN)


def test_values_of_other_settings_and_folders_of_other_kinds(copy: Path, tmp_path: Path):
    text = (copy / "population.jsonl").read_text()
    (copy / "population.jsonl").write_text(text.replace("optimizer.lr", "optimizer.rate"))
    with pytest.raises(PopulationError, match=r"its values are not those of optimizer.lr"):
        train(copy, PLAN)
    (copy / "population.yaml").unlink()
    with pytest.raises(PopulationError, match=r"a population without its population\.yaml"):
        train(copy, PLAN)
    for file in ("config.yaml", "seeds.yaml", "sweep.db"):
        (tmp_path / file).mkdir()
        (tmp_path / file / file).write_text("")
        with pytest.raises(RunDirectoryError, match=r"contains .*choose another directory"):
            train(tmp_path / file, PLAN)


def test_equal_populations_have_equal_files(whole: Path, tmp_path: Path):
    train(tmp_path / "again", PLAN)
    same = ("best.safetensors", "population.jsonl", "population.yaml")
    assert [(tmp_path / "again" / name).read_bytes() for name in same] == [(whole / name).read_bytes() for name in same]
