"""population.jsonl: rounds are there completely or not at all."""

import pytest

from surefoot.errors import PopulationError
from surefoot.population.log import Entry, PopulationLog


def entry(number: int, member: int) -> Entry:
    return Entry(number, member, 1.5, [1.0, 2.0], "abc", 10, {"optimizer.lr": 1e-3}, {}, member, {"optimizer.lr": 1e-3})


def test_rounds_are_read_back(tmp_path):
    log = PopulationLog(tmp_path / "population.jsonl", 2)
    assert log.read() == []
    rounds = [[entry(number, member) for member in range(2)] for number in (1, 2)]
    for entries in rounds:
        log.append(entries)
    assert log.read() == rounds


def test_a_round_that_was_cut_off_anywhere_is_written_again(tmp_path):
    path = tmp_path / "population.jsonl"
    log = PopulationLog(path, 2)
    log.append([entry(1, 0), entry(1, 1)])
    first = path.read_bytes()
    log.append([entry(2, 0), entry(2, 1)])
    whole = path.read_bytes()
    for end in range(len(first), len(whole)):
        path.write_bytes(whole[:end])
        assert len(log.read()) == 1
        if end % 40 == 0:
            log.append([entry(2, 0), entry(2, 1)])
            assert path.read_bytes() == whole


def test_it_is_never_written_through_a_link(tmp_path):
    (tmp_path / "population.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match="it is a symbolic link"):
        PopulationLog(tmp_path / "population.jsonl", 1).append([entry(1, 0)])


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"round": 1}', "null"])
def test_damaged_lines_are_named(tmp_path, line):
    path = tmp_path / "population.jsonl"
    PopulationLog(path, 1).append([entry(1, 0)])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(PopulationError, match="line 2 is damaged"):
        PopulationLog(path, 1).read()


def test_lines_of_other_rounds_are_refused(tmp_path):
    path = tmp_path / "population.jsonl"
    PopulationLog(path, 1).append([entry(2, 0)])
    with pytest.raises(PopulationError, match="round 1"):
        PopulationLog(path, 1).read()
