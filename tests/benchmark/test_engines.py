"""Who is measured against whom in `bench rollout`."""

import pytest

from surefoot.benchmark.engines import LIMIT, NATIVE, against, in_order, thread_ratios, threads_name
from surefoot.benchmark.rounds import Measured, Spread
from surefoot.benchmark.subject import Window


def taking(name: str, *seconds: float) -> Measured:
    return Measured(name, [Window(1, 100, taken, 0.0) for taken in seconds])


def test_the_fraction_of_the_limit_is_of_neighbors() -> None:
    """The machine is half as fast in the second round: the medians of each alone would tell nothing."""
    native, limit = taking(NATIVE, 1.0, 2.5, 1.25), taking(LIMIT, 0.8, 1.6, 0.8)
    found = against(native, LIMIT, [native, limit])
    assert found == Spread(pytest.approx(0.64), pytest.approx(0.64), pytest.approx(0.8))
    assert against(limit, LIMIT, [native, limit]) is None
    assert against(native, LIMIT, [native]) is None


def test_where_native_cannot_be_had_it_comes_last_and_has_no_limit() -> None:
    names = [NATIVE, LIMIT, threads_name(1), threads_name(2), "local", "processes"]
    sound = [taking(name, 1.0) for name in names]
    assert [one.name for one in in_order(sound)] == names
    failed = [Measured(one.name, error="no such env") if one.name.startswith((NATIVE, LIMIT)) else one for one in sound]
    assert [one.name for one in in_order(failed)] == ["local", "processes", NATIVE]


def test_more_threads_are_compared_with_the_first_number() -> None:
    one, two, four = (
        taking(threads_name(1), 1.0, 1.0),
        taking(threads_name(2), 0.5, 0.625),
        taking(threads_name(4), 0.25),
    )
    four = Measured(four.name, error="fell over")
    ((fewer, more, found),) = thread_ratios([taking(NATIVE, 1.0), one, two, four])
    assert (fewer.name, more.name) == ("native, 1 thread", "native, 2 threads")
    assert found == Spread(1.8, 1.6, 2.0)
