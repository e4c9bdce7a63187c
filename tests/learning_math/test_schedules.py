import math
from dataclasses import replace

import pytest

from surefoot.core.config import OptimizerConfig
from surefoot.core.layers import build_config
from surefoot.core.records import Learned, Progress
from surefoot.learning.schedules import Schedules

LEARNED = Learned(
    policy_loss=0.0,
    value_loss=0.0,
    entropy=0.0,
    approx_kl=0.0,
    clip_fraction=0.0,
    grad_norm=0.0,
    explained_variance=0.0,
    epochs=1,
    skipped_steps=0,
    lr=0.0,
    clip=0.2,
    entropy_coef=0.0,
)


def schedules_of(**settings) -> Schedules:
    return Schedules(build_config(settings))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [2.0, 2.0, 2.0]),
        ("linear", [2.0, 1.0, 0.0]),
        ({"kind": "cosine", "floor": 0.1}, [2.0, 2 * (0.1 + 0.9 * 0.5), 0.2]),
    ],
)
def test_schedules_at_begin_middle_and_end(schedule, expected):
    schedules = schedules_of(optimizer={"lr": 2.0}, schedules={"lr": schedule})
    assert [schedules.at(Progress(step, 100)).lr for step in (0, 50, 100)] == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_no_update_of_a_run_is_at_zero(schedule):
    schedules = schedules_of(
        ppo={"entropy_coef": 0.01}, schedules={"lr": schedule, "clip": schedule, "entropy_coef": schedule}
    )
    progress = Progress(0, 1000)
    while not progress.is_done:
        knobs = schedules.at(progress)
        assert min(knobs.lr, knobs.clip, knobs.entropy_coef) > 0
        progress = progress.advance(300)  # the last rollout overshoots
    assert progress.iteration == 4


def test_each_knob_has_its_own_schedule():
    schedules = schedules_of(
        ppo={"clip": 0.4, "entropy_coef": 0.1},
        optimizer={"lr": 1.0},
        schedules={"clip": "linear", "lr": "cosine"},
    )
    knobs = schedules.at(Progress(50, 100))
    assert (knobs.lr, knobs.clip, knobs.entropy_coef) == pytest.approx((0.55, 0.2, 0.1))


def test_schedules_are_functions_of_progress_alone():
    schedules = schedules_of(schedules={"lr": "cosine"})
    there = schedules.at(Progress(70, 100))
    schedules.at(Progress(90, 100))
    schedules.observe(replace(LEARNED, approx_kl=1.0))
    assert schedules.at(Progress(70, 100)) == there


@pytest.mark.parametrize(("kl", "factor"), [(0.03, 1 / 1.5), (0.02, 1.0), (0.01, 1.0), (0.005, 1.0), (0.004, 1.5)])
def test_adaptive_rate_steers_toward_the_wanted_kl(kl, factor):
    schedules = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": {"kind": "kl_adaptive", "desired_kl": 0.01}})
    schedules.observe(replace(LEARNED, approx_kl=kl))
    assert schedules.at(Progress(0, 1)).lr == pytest.approx(1e-3 * factor)


@pytest.mark.parametrize(("kl", "limit"), [(1.0, 1e-6), (0.0, 1e-2)])
def test_adaptive_rate_stays_in_its_range(kl, limit):
    schedules = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "kl_adaptive"})
    for _ in range(100):
        schedules.observe(replace(LEARNED, approx_kl=kl))
    assert schedules.at(Progress(0, 1)).lr == limit


def test_a_kl_that_is_no_number_changes_nothing():
    schedules = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "kl_adaptive"})
    schedules.observe(replace(LEARNED, approx_kl=math.nan))
    assert schedules.at(Progress(0, 1)).lr == 1e-3


def test_the_adaptive_rate_is_restored_unless_the_user_has_set_another():
    trained = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "kl_adaptive"})
    trained.observe(replace(LEARNED, approx_kl=1.0))
    same = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "kl_adaptive"})
    same.load_state(trained.state())
    assert same.at(Progress(0, 1)).lr == pytest.approx(1e-3 / 1.5)
    changed = schedules_of(optimizer={"lr": 5e-4}, schedules={"lr": "kl_adaptive"})
    changed.load_state(trained.state())
    assert changed.at(Progress(0, 1)).lr == 5e-4


def test_a_schedule_that_the_user_changed_starts_afresh():
    trained = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "kl_adaptive"})
    trained.observe(replace(LEARNED, approx_kl=1.0))
    other = schedules_of(optimizer={"lr": 1e-3}, schedules={"lr": "linear"})
    other.load_state(trained.state())
    assert other.at(Progress(0, 1)).lr == 1e-3


def test_only_the_adaptive_schedule_remembers_the_kl():
    schedules = schedules_of(schedules={"lr": "linear"})
    schedules.observe(replace(LEARNED, approx_kl=1.0))
    assert schedules.state() == {"lr": {"kind": "linear", "start": OptimizerConfig().lr, "state": {}}}
