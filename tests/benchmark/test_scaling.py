"""Which number of envs is recommended, and what is kept constant on the way."""

import pytest

from surefoot.benchmark.rounds import Measured, Spread
from surefoot.benchmark.scaling import Point, farthest, is_tie, recommend, with_num_envs
from surefoot.benchmark.subject import Window
from surefoot.settings.layers import build_config


def point(num_envs: int, rates: list[int], megabytes: int | None) -> Point:
    windows = [Window(1, rate, 0.5, 0.5) for rate in rates]
    memory = None if megabytes is None else megabytes * 10**6
    return Point("local", num_envs, 64, Measured(f"{num_envs}", windows, memory), None, None, None)


def test_the_fastest_is_recommended() -> None:
    best = recommend([point(2, [100, 110, 120], 100), point(8, [500, 510, 520], 400), point(4, [300, 310, 320], 90)])
    assert best.point.num_envs == 8
    assert "fastest, 510 steps/s" in best.words
    assert "--rollout.num_envs 8" in best.words


def test_within_the_noise_the_smallest_wins() -> None:
    """16 is fastest by its median, but the ranges of 8 and 16 meet; 4 is cheapest and clearly slower."""
    slow, tie, fastest = point(4, [300, 310, 320], 90), point(8, [480, 490, 530], 200), point(16, [520, 600, 610], 400)
    best = recommend([slow, tie, fastest])
    assert best.point is tie
    assert "8 envs, engine local and 16 envs, engine local are equally fast within the noise" in best.words
    assert recommend([slow, point(8, [480, 490, 510], 200), fastest]).point is fastest


def test_memory_that_nobody_knows_leaves_the_fewest_envs() -> None:
    assert recommend([point(16, [600], None), point(8, [590], None)]).point.num_envs == 8


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (Spread(96, 96, 96), True),  # less than 5 % behind: too close to call with so few repeats
        (Spread(94, 94, 94), False),
        (Spread(80, 70, 100), True),  # its best repeat reaches the best's worst one
        (Spread(80, 70, 98), False),
    ],
)
def test_ties(one: Spread, expected: bool) -> None:
    assert is_tie(one, Spread(100, 99, 101)) is expected


def test_the_number_of_minibatches_is_kept() -> None:
    config = build_config({"rollout": {"num_envs": 8, "num_steps": 128}, "ppo": {"batch_size": 256}})
    assert [with_num_envs(config, size).ppo.batch_size for size in (2, 8, 64)] == [64, 256, 2048]
    assert with_num_envs(config, 64).rollout.num_envs == 64


def test_a_batch_that_would_not_divide_is_the_nearest_that_does() -> None:
    config = build_config({"rollout": {"num_envs": 3, "num_steps": 5}, "ppo": {"batch_size": 5, "micro_batch_size": 5}})
    smaller = with_num_envs(config, 1)  # 3 minibatches of 5 steps
    assert smaller.rollout.size % smaller.ppo.batch_size == 0
    assert smaller.ppo.micro_batch_size == smaller.ppo.batch_size == 1


def test_the_cost_of_a_step_farthest_from_the_first_number_of_envs() -> None:
    """Cheaper counts as well as dearer; each engine has its own."""

    def costing(engine: str, num_envs: int, cost: float) -> Point:
        return Point(engine, num_envs, 64, Measured(""), None, None, Spread(cost, cost, cost))

    failed = Point("native", 9, 64, Measured("", error="fell over"), None, None, None)
    points = [costing("native", 64, 1.0), costing("native", 256, 1.1), costing("native", 1024, 0.8), failed]
    found = farthest([*points, costing("local", 64, 1.0), costing("local", 256, 1.3)])
    assert {engine: point.num_envs for engine, point in found.items()} == {"native": 1024, "local": 256}
    assert found["native"].deviation == pytest.approx(-0.2)
