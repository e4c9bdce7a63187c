"""The examples run as they are, with fewer steps, and learn."""

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
STEPS = {
    "own_env": 8192,
    "own_policy": 6144,
    "recurrent": 8192,
    "multi_agent": 9600,
    "masks": 12288,
    "hybrid_actions": 8192,
    "seeds": 4096,
}
"""Of each example, enough to see that it learns."""


@pytest.fixture
def printed(request, monkeypatch, capsys):
    """What an example prints, line by line; in this process, because importing torch takes longer than the example."""
    monkeypatch.setattr(sys, "argv", [request.param, str(STEPS[request.param])])
    runpy.run_path(str(EXAMPLES / f"{request.param}.py"), run_name="__main__")
    return capsys.readouterr().out.splitlines()


def numbers(line):
    """All numbers in a line."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", line)]


def of(example):
    """Run this example for the test."""
    return pytest.mark.parametrize("printed", [example], indirect=True, ids=[example])


def test_every_example_is_listed_and_tested():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    names = {script.stem for script in EXAMPLES.glob("*.py")}
    assert names == set(STEPS)
    assert all(f"[{name}.py]({name}.py)" in listed for name in names)


@of("own_env")
def test_own_env(printed):
    before, after = numbers(printed[0])
    assert after > before / 3  # returns are negative
    docked_before, docked_after = numbers(printed[1])
    assert docked_after > docked_before


@of("own_policy")
def test_own_policy(printed):
    assert [line.partition(":")[0] for line in printed[:2]] == ["residual encoder", "linear policy"]
    for line in printed[:2]:
        before, after = numbers(line)
        assert after > 3 * before
    assert "angle" in printed[2]


@of("recurrent")
def test_recurrent(printed):
    without, with_memory = (numbers(line)[1] for line in printed[:2])
    assert without < 60 < with_memory
    assert numbers(printed[2])[0] > 30


@of("multi_agent")
def test_multi_agent(printed):
    before, after = numbers(printed[0])
    assert after > before / 2  # returns are negative


@of("masks")
def test_masks(printed):
    before, after, best = numbers(printed[0])
    assert before + 1 < after <= best
    played = numbers(printed[1])
    assert len(played) == len(set(played)) == best


@of("hybrid_actions")
def test_hybrid_actions(printed):
    before, after, best = numbers(printed[0])
    assert before < 0
    assert best / 2 < after <= best
    assert re.search(r"tool (\d) .* chosen \1", printed[1])


@of("seeds")
def test_seeds(printed):
    (_, slow, *_), (_, fast, spread, count, worst, best) = map(numbers, printed)
    assert slow < fast
    assert worst < fast < best
    assert 0 < spread < best - worst
    assert count == 4
