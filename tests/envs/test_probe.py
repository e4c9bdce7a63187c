"""The probe does what a probe must: all kinds of actions, masks that leave something, both kinds of endings."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from surefoot.envs.tasks.probe import KINDS, Probe
from surefoot.envs.tasks.registration import register_envs

CHOICES = {"discrete": [5], "multi_discrete": [3, 2], "multi_binary": [5]}


@pytest.fixture(scope="module", autouse=True)
def _own_tasks() -> None:
    register_envs()


@pytest.mark.filterwarnings("ignore:.*symmetric and normalized space")  # uneven on purpose, so that scaling is seen
@pytest.mark.parametrize("kind", KINDS)
def test_is_a_proper_env(kind):
    check_env(Probe(kind), skip_render_check=True)


def test_an_unknown_kind_of_action_is_refused():
    with pytest.raises(gym.error.Error, match="action must be one of discrete, multi_discrete, multi_binary, box"):
        gym.make("Probe-v0", action="tuple")


@pytest.mark.parametrize("kind", KINDS)
def test_episodes_end_in_both_ways_after_random_times(kind):
    env = gym.make("Probe-v0", action=kind)
    env.reset(seed=1)
    env.action_space.seed(2)
    endings, lengths, length = {"terminated": 0, "truncated": 0}, set(), 0
    for _ in range(1_500):
        obs, _, terminated, truncated, _ = env.step(env.action_space.sample())
        assert obs in env.observation_space
        length += 1
        if terminated or truncated:
            endings["terminated" if terminated else "truncated"] += 1
            lengths.add(length)
            length = 0
            env.reset()
    assert min(endings.values()) > 5
    assert len(lengths) > 5


@pytest.mark.parametrize("kind", CHOICES)
def test_masks_change_and_never_forbid_everything(kind):
    env = Probe(kind)
    masks = [env.reset(seed=seed)[1]["action_mask"] for seed in range(300)]
    assert len({mask.tobytes() for mask in masks}) > 5
    if kind != "multi_binary":  # where leaving all bits unset is always possible
        for mask in masks:
            assert all(part.any() for part in np.split(mask, np.cumsum(CHOICES[kind])[:-1]))


def test_what_is_forbidden_costs_and_what_is_allowed_pays_its_cue():
    env = Probe("discrete")
    seen = set()
    for seed in range(200):
        obs, info = env.reset(seed=seed)
        choice = seed % 5
        reward = env.step(np.int64(choice + 3))[1]
        allowed = bool(info["action_mask"][choice])
        seen.add(allowed)
        assert reward == pytest.approx(float(obs["cues"][choice]) if allowed else -1.0)
    assert seen == {True, False}


def test_box_actions_pay_for_being_near():
    env = Probe("box")
    obs, info = env.reset(seed=0)
    assert "action_mask" not in info
    assert env.step(obs["cues"][:2])[1] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", CHOICES)
def test_the_best_choice_can_be_seen(kind):
    """Choosing by cues and mask earns far more than chance: there is something to learn."""
    env = Probe(kind)
    best, chance = 0.0, 0.0
    env.action_space.seed(0)
    for seed in range(300):
        obs, info = env.reset(seed=seed)
        worth = np.where(info["action_mask"], obs["cues"], -1.0)
        parts = np.split(worth, np.cumsum(CHOICES[kind])[:-1])
        if kind == "multi_binary":
            action = (worth > 0).astype(np.int8)
        elif kind == "discrete":
            action = worth.argmax() + 3
        else:
            action = np.array([part.argmax() for part in parts]) + env.action_space.start
        best += env.step(action)[1]
        env.reset(seed=seed)
        chance += env.step(env.action_space.sample())[1]
    assert best > chance + 150
