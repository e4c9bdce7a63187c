"""Half a minute of `make fuzz`, and that it notices what it looks for."""

import random

import pytest
import torch

from tests.fuzz import planted
from tests.fuzz.attacks import checkpoint_contents
from tests.fuzz.campaign import ATTACKS, attack
from tests.fuzz.values import mutated

SECONDS = 2.0


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_finds_nothing(name):
    result = attack(name, seed=0, seconds=SECONDS)
    assert result.cases >= 1
    assert not result.failures, "\n".join(result.failures)


def test_errors_crashes_and_hangs_are_found_and_the_attack_goes_on():
    result = attack("tests.fuzz.planted", planted.SEED, seconds=300.0, hang_s=2.0, most_failures=3)
    error, crash, hang = result.failures
    assert result.cases == 9
    assert "ZeroDivisionError" in error
    assert "the process ended with code -6" in crash
    assert "no progress for" in hang
    for failure, case in zip(result.failures, (2, 5, 8), strict=True):
        assert f"repeat: make fuzz ATTACK='tests.fuzz.planted --seed 3 --case {case}'" in failure


def test_the_damage_is_real():
    sound = {"a": {"weights": torch.ones(3), "b": [1, 2.0, "c"], **{str(i): i for i in range(50)}}, "d": None}
    changed = [checkpoint_contents.damaged(random.Random(seed), sound) for seed in range(100)]
    assert sound["a"]["b"] == [1, 2.0, "c"], "the original is not touched"
    assert sum(repr(one) != repr(sound) for one in changed) > 80
    data = bytes(range(256))
    assert sum(mutated(random.Random(seed), data) != data for seed in range(100)) > 80
