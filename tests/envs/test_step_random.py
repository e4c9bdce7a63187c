"""Random numbers inside a step: C++ draws the same ones (cpp/tests/test_random.cpp has these numbers)."""

import json

import numpy as np
import pytest
from scipy import stats

from surefoot.envs.step_random import StepRandom

SEED = 7
DRAWN = [0.7857382393636637, 0.9280143789247131, -0.6989941331897584, -0.03242959821814365, 0.6339275786925435]


def test_the_numbers_that_cpp_draws() -> None:
    random = StepRandom(np.random.default_rng(SEED))
    random.next_step()
    drawn = [random.uniform(), random.uniform(-2.0, 5.0), random.normal(), random.normal()]
    random.next_step()
    assert [*drawn, random.normal()] == DRAWN


def test_a_step_does_not_depend_on_how_much_was_drawn_before_it() -> None:
    few, many = StepRandom(np.random.default_rng(SEED)), StepRandom(np.random.default_rng(SEED))
    for count, random in ((1, few), (50, many)):
        random.next_step()
        for _ in range(count):
            random.uniform()
        random.next_step()
    assert few.normal() == many.normal()


def test_it_continues_from_its_state() -> None:
    random, other = StepRandom(np.random.default_rng(SEED)), StepRandom(np.random.default_rng(SEED + 1))
    for _ in range(3):
        random.next_step()
        random.normal()
    other.load_state(json.loads(json.dumps(random.state())))
    for one in (random, other):
        one.next_step()
    assert random.normal() == other.normal()


@pytest.mark.parametrize(("draw", "law"), [(StepRandom.uniform, "uniform"), (StepRandom.normal, "norm")])
def test_the_distribution(draw, law) -> None:
    random = StepRandom(np.random.default_rng(SEED))
    values = []
    for _ in range(400):
        random.next_step()
        values += [draw(random) for _ in range(5)]
    assert stats.kstest(values, law).pvalue > 0.01
