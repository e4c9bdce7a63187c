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


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "null", "{}", '{"score": "high"}', '{"step": -1}', '{"other": 1}']
)
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


def begun(folder: Path) -> Path:
    """The remains of a population without its decisions: only what training writes."""
    (folder / "population.jsonl").unlink()
    for member in (folder / "members").iterdir():
        shutil.rmtree(member / "rounds")
    return folder


@pytest.mark.parametrize("left", ["best", "metrics", "damaged checkpoints"])
def test_remains_of_any_kind_are_never_a_new_start(copy: Path, left: str):
    begun(copy)
    for file in (copy / "members").glob("*/checkpoints/*"):
        if left == "damaged checkpoints":
            file.write_bytes(file.read_bytes()[:500])
        else:
            file.unlink()
    if left == "best":
        shutil.rmtree(copy / "members")
    else:
        (copy / "best.safetensors").unlink()
    before = contents(copy)
    message = "lacks round 1 of 1, and" if left == "best" else "00 has begun round 1, but has no checkpoint"
    with pytest.raises(PopulationError, match=message):
        train(copy, PLAN)
    after = contents(copy)
    assert {name: after[name] for name in before if "log.txt" not in name} == {
        name: data for name, data in before.items() if "log.txt" not in name
    }


def test_a_best_policy_alone_belongs_to_somebody(copy: Path):
    begun(copy)
    shutil.rmtree(copy / "members")
    (copy / "population.yaml").unlink()
    with pytest.raises(PopulationError, match=r"a population without its population\.yaml"):
        train(copy, PLAN)


@pytest.mark.parametrize("has_log", [True, False])
@pytest.mark.parametrize("how", ["junk", "other"])
def test_a_damaged_state_is_named_and_no_failure_of_the_member(copy: Path, whole: Path, how: str, has_log: bool):
    """Two rounds are decided; the last outcomes and checkpoints are gone, so that the members need their states."""
    lines = (copy / "population.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "population.jsonl").unlink()
    if has_log:
        (copy / "population.jsonl").write_bytes(b"".join(lines[:6]))
    for member in (copy / "members").iterdir():
        shutil.rmtree(member / "checkpoints")
        (member / "rounds" / "0003.json").unlink()
        (member / "rounds" / "0003.safetensors").rename(member / "rounds" / "0002.safetensors")
    if how == "junk":
        (copy / "members" / "01" / "rounds" / "0002.safetensors").write_bytes(b"junk" * 100)
    message = r"0002\.safetensors is not (a Surefoot checkpoint|the state that member 0\d had).*; restore it"
    with pytest.raises(PopulationError, match=message):
        train(copy, PLAN)
    assert (copy / "population.jsonl").read_bytes() == b"".join(lines[:6])


def test_a_damaged_state_of_the_round_itself_can_be_removed(copy: Path, whole: Path):
    lines = (copy / "population.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "population.jsonl").write_bytes(b"".join(lines[:6]))
    (copy / "members" / "01" / "rounds" / "0003.json").unlink()
    state = copy / "members" / "01" / "rounds" / "0003.safetensors"
    state.unlink()
    state.write_bytes(b"junk" * 100)
    with pytest.raises(PopulationError, match=r"01/rounds/0003\.safetensors is not .*; remove it and resume"):
        train(copy, PLAN)
    state.unlink()
    train(copy, PLAN)
    assert (copy / "population.jsonl").read_bytes() == (whole / "population.jsonl").read_bytes()


def test_impossible_next_values_are_named_with_their_line(copy: Path):
    lines = (copy / "population.jsonl").read_text().splitlines(keepends=True)
    entry = json.loads(lines[4])
    entry["next_values"]["optimizer.lr"] = -5
    (copy / "population.jsonl").write_text("".join([*lines[:4], json.dumps(entry) + "\n", lines[5]]))
    with pytest.raises(PopulationError, match=r"population\.jsonl: line 5: next_values: optimizer\.lr: .*remove the"):
        train(copy, PLAN)


def test_a_file_in_the_place_of_a_folder_of_rounds(copy: Path):
    (copy / "population.jsonl").unlink()
    shutil.rmtree(copy / "members" / "00" / "rounds")
    (copy / "members" / "00" / "rounds").write_text("")
    with pytest.raises(PopulationError, match="00/rounds is not a directory"):
        train(copy, PLAN)


@pytest.mark.parametrize("has_log", [True, False])
def test_a_deleted_best_policy_is_restored_or_said(
    copy: Path, whole: Path, has_log: bool, caplog: pytest.LogCaptureFixture
):
    (copy / "best.safetensors").unlink()
    if not has_log:
        (copy / "population.jsonl").unlink()
    rounds = [json.loads(line) for line in (whole / "population.jsonl").read_text().splitlines()]
    winner = max(rounds, key=lambda entry: (entry["score"], entry["round"], -entry["member"]))
    train(copy, PLAN)
    if winner["round"] == 3:
        assert contents(copy) == contents(whole)
    else:
        assert "best.safetensors is missing, and cannot be restored" in caplog.text
    (copy / "best.safetensors").unlink(missing_ok=True)
    for one in (copy / "members").glob("*/rounds/*.safetensors"):
        one.unlink()
    train(copy, PLAN)
    assert "best.safetensors is missing, and cannot be restored" in caplog.text
