import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from surefoot.data.records import Learned, Progress
from surefoot.errors import CheckpointError
from surefoot.learning.schedules import Schedules
from surefoot.settings.config import OptimizerConfig
from surefoot.settings.layers import build_config
from surefoot.storage.saved import Saved

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


ENTROPY = {"kind": "entropy_adaptive", "window": 4, "slope": 0.01, "decay_updates": 5, "floor": 0.2}


def coefficients(entropies: Iterable[float], **settings: Any) -> list[float]:
    """The entropy coefficient of each update, as a share of its start, and that of the next one."""
    schedules = schedules_of(ppo={"entropy_coef": 0.1}, schedules={"entropy_coef": ENTROPY | settings})
    found = [schedules.at(Progress(0, 1)).entropy_coef]
    for entropy in entropies:
        schedules.observe(replace(LEARNED, entropy=entropy))
        found.append(schedules.at(Progress(0, 1)).entropy_coef)
    return [value / 0.1 for value in found]


@pytest.mark.parametrize("level", [0.6, -7.5])  # of discrete, and of continuous actions with a small std
def test_the_entropy_coefficient_decays_only_after_a_plateau(level):
    falling = [level + 0.05 * step for step in range(10, 0, -1)]
    found = coefficients([*falling, *[level] * 12])
    assert found[:13] == [1.0] * 13, "the slope over the window is still too steep"
    assert found[14:] == pytest.approx([0.84, 0.68, 0.52, 0.36, 0.2, *[0.2] * 4])
    assert coefficients([level - 0.05 * step for step in range(30)]) == [1.0] * 31
    assert coefficients([level + 0.05 * step for step in range(30)]) == [1.0] * 31, "rising is not a plateau either"


def test_a_plateau_is_of_the_slope_and_not_of_the_noise():
    noisy = [0.5 + 0.004 * (-1) ** step for step in range(12)]
    assert coefficients(noisy)[-1] == pytest.approx(0.2)


def test_a_decay_that_has_begun_goes_on():
    found = coefficients([*[0.5] * 4, *[0.5 + 0.1 * step for step in range(1, 6)]])
    assert found[4:] == pytest.approx([0.84, 0.68, 0.52, 0.36, 0.2, 0.2])


@pytest.mark.parametrize("level", [0.1, -9.0])
def test_a_collapse_of_the_entropy_is_boosted_until_it_has_recovered(level):
    settings = {"collapse": level, "recovery": 0.3, "boost": 3.0}
    high, low, between, recovered = level + 1, level - 0.01, level + 0.29, level + 0.31
    entropies = [high, between, low, between, low, between, recovered, between]
    assert coefficients(entropies, **settings) == pytest.approx([1, 1, 1, 3, 3, 3, 3, 1, 1])


def test_a_collapsed_policy_is_not_taken_for_a_plateau():
    settings = {"collapse": 0.1, "recovery": 0.3, "boost": 3.0}
    found = coefficients([*[0.05] * 20, *[0.5] * 4], **settings)
    assert found == pytest.approx([1, *[3] * 20, 1, 1, 1, 0.84])


def test_the_floor_holds_while_decay_and_boost_do_what_they_do():
    settings = {"collapse": 0.1, "boost": 3.0, "floor": 0.5, "decay_updates": 2}
    found = coefficients([*[0.5] * 8, 0.0, 0.0, *[0.5] * 3], **settings)
    assert min(found) == pytest.approx(0.5)
    assert found[8:] == pytest.approx([0.5, 1.5, 1.5, 0.5, 0.5, 0.5])


def test_an_entropy_that_is_no_number_changes_nothing():
    assert coefficients([0.5, 0.5, 0.5, math.nan, math.inf, 0.5]) == pytest.approx([*[1.0] * 6, 0.84])


def test_the_entropy_schedule_goes_on_from_its_state():
    entropies = [0.6, 0.55, *[0.5] * 5, 0.05, 0.12, 0.5, 0.5]
    settings = ENTROPY | {"collapse": 0.1}
    for cut in range(len(entropies)):
        whole, cut_off, resumed = (
            schedules_of(ppo={"entropy_coef": 0.1}, schedules={"entropy_coef": settings}) for _ in range(3)
        )
        for entropy in entropies[:cut]:
            cut_off.observe(replace(LEARNED, entropy=entropy))
        saved = json.loads(json.dumps(cut_off.state()))
        resumed.check_state(Saved(saved, "schedules"))
        resumed.load_state(saved)
        for entropy in entropies:
            whole.observe(replace(LEARNED, entropy=entropy))
        for entropy in entropies[cut:]:
            resumed.observe(replace(LEARNED, entropy=entropy))
        assert resumed.state() == whole.state()
        assert resumed.at(Progress(0, 1)) == whole.at(Progress(0, 1))


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("entropies", [0.5, math.nan], r"entropies\.1 must be a finite number"),
        ("entropies", 3.0, r"entropies must be a list"),
        ("decayed", -1, r"decayed must be a whole number"),
        ("is_boosted", 2, r"is_boosted must be true or false"),
    ],
)
def test_a_state_that_no_entropy_schedule_has_is_refused(entry, value, message):
    schedules = schedules_of(schedules={"entropy_coef": ENTROPY})
    saved = schedules.state()
    saved["entropy_coef"]["state"][entry] = value
    with pytest.raises(CheckpointError, match=message):
        schedules.check_state(Saved(saved, "schedules"))


PENALTY = {"ppo": {"terms": {"kl": {"kind": "kl_penalty", "weight": 0.1}}}}


@pytest.mark.parametrize(
    ("kl", "factor"), [(0.016, 2.0), (0.015, 1.0), (0.01, 1.0), (0.0067, 1.0), (0.0066, 0.5), (math.nan, 1.0)]
)
def test_the_weight_of_a_penalty_moves_with_the_kl(kl, factor):
    """The numbers of the paper: doubled above 1.5 times the target, halved below it divided by 1.5."""
    schedules = schedules_of(**PENALTY, schedules={"kl.weight": {"kind": "kl_penalty", "desired_kl": 0.01}})
    schedules.observe(replace(LEARNED, approx_kl=kl))
    assert schedules.at(Progress(0, 1))["kl.weight"] == pytest.approx(0.1 * factor)


@pytest.mark.parametrize(("kl", "limit"), [(1.0, 100.0), (0.0, 1e-4)])
def test_the_weight_of_a_penalty_stays_in_its_range(kl, limit):
    schedules = schedules_of(**PENALTY, schedules={"kl.weight": "kl_penalty"})
    for _ in range(30):
        schedules.observe(replace(LEARNED, approx_kl=kl))
    assert schedules.at(Progress(0, 1))["kl.weight"] == limit


def test_a_penalty_without_weight_begins_at_its_lower_limit():
    schedules = schedules_of(
        ppo={"terms": {"kl": {"kind": "kl_penalty", "weight": 0}}}, schedules={"kl.weight": "kl_penalty"}
    )
    schedules.observe(replace(LEARNED, approx_kl=1.0))
    assert schedules.at(Progress(0, 1))["kl.weight"] == 1e-4
