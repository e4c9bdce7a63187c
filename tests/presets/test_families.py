"""Envs of a family share presets."""

import envpool
import pytest

from surefoot.envs.adapters.atari import is_atari
from surefoot.presets import configured, preset_of
from surefoot.presets.families import ATARI


@pytest.mark.parametrize("env_id", ["ALE/Pong-v5", "ale_py:ALE/Pong-v5", "PongNoFrameskip-v4", "envpool:Pong-v5"])
def test_every_id_of_a_game_has_the_game_s_preset(env_id):
    run = configured(env_id)
    assert run.preset == "ALE/Pong-v5"
    assert run.config.env.id == env_id, "the preset does not change the env"
    assert run.config.env.for_evaluation.kwargs["reward_clip"] is False


@pytest.mark.parametrize("env_id", ["ALE/Breakout-v5", "QbertNoFrameskip-v4", "envpool:MsPacman-v5"])
def test_games_without_a_preset_share_one(env_id):
    run = configured(env_id)
    assert run.preset == ATARI
    assert (run.config.env.id, run.config.env.kwargs["episodic_life"]) == (env_id, True)


def test_envpools_games_are_told_from_its_other_tasks():
    games = {name for name in envpool.list_all_envs() if preset_of(f"envpool:{name}")}
    by_envpool = {name for name, spec in envpool.registration.registry.specs.items() if "atari" in str(spec).lower()}
    assert games == by_envpool
    assert len(games) > 100
    assert not preset_of("envpool:Ant-v5")


def test_what_has_a_preset_of_its_own_keeps_it():
    assert preset_of("Ant-v5") == "Ant-v5"
    assert preset_of("envpool:CartPole-v1") == ""
    assert not is_atari("Pendulum-v1")
    assert configured("ALE/Breakout-v5", {"preset": "none"}).preset == ""
