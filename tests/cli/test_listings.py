"""`surefoot envs` and `surefoot presets`, and that every preset works."""

import importlib
import importlib.util
import subprocess
import sys
import warnings

import gymnasium as gym
import pytest

from surefoot.api import PPO
from surefoot.cli.main import main
from surefoot.envs.adapters.atari import register_installed_games
from surefoot.envs.native import native_ids
from surefoot.envs.tasks.registration import register_envs
from surefoot.errors import EnvError
from surefoot.presets import DEFAULT, describe_preset, load_preset, preset_names, preset_of
from surefoot.settings.layers import build_config

NEEDS_BOX2D = {"LunarLander-v3"}
HAS_BOX2D = importlib.util.find_spec("Box2D") is not None


@pytest.fixture(scope="module", autouse=True)
def _import_box2d() -> None:
    """Its extension crashes on import where the warnings that SWIG causes are errors."""
    if HAS_BOX2D:
        with warnings.catch_warnings(action="ignore"):
            importlib.import_module("Box2D")


def test_envs_marks_those_with_a_preset_and_those_that_are_native(capsys):
    assert main(["envs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "*n CartPole-v1" in lines
    assert "   CartPole-v0" in lines
    assert len(lines) == len(gym.registry)
    assert {line[3:] for line in lines if line[1] == "n"} == set(native_ids())
    assert {line[3:] for line in lines if line[0] == "*"} == {name for name in gym.registry if preset_of(name)}
    assert "*  ALE/Breakout-v5" in lines, "a game of a family with a preset"
    assert "*  ALE/Pong-v5" in lines


def test_envs_lists_the_tasks_that_are_surefoots_own(capsys):
    assert main(["envs", "--filter", "NoVel"]) == 0
    listed = [line[1:] for line in capsys.readouterr().out.splitlines()]  # without the mark of a preset
    assert listed == ["n AcrobotNoVel-v1", "n CartPoleNoVel-v1", "n PendulumNoVel-v1"]
    assert main(["envs", "--filter", "probe"]) == 0
    assert capsys.readouterr().out.splitlines() == [" n Probe-v0"]


def test_envs_are_listed_without_the_core_too():
    """In a process of its own, where MuJoCo is as if it were not installed."""
    code = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "mujoco" else find(name, *rest)
from surefoot.cli.main import main
sys.exit(main(["envs", "--filter", "CartPole-v1"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "*  CartPole-v1" in done.stdout.splitlines()


def test_envs_can_be_searched(capsys):
    assert main(["envs", "--filter", "CHEETAH"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "*n HalfCheetah-v5" in lines
    assert all("cheetah" in line.lower() for line in lines)


def test_presets_are_listed_with_where_they_come_from(capsys):
    assert main(["presets"]) == 0
    runs, *others = capsys.readouterr().out.split("\n\n")
    for name, line in zip(preset_names(), runs.splitlines(), strict=True):
        assert line.split() == [name, *describe_preset(name).split()]
        assert describe_preset(name)
    assert [(other.splitlines()[0], other.split()[4]) for other in others] == [
        ("presets of 'surefoot population':", "market"),
        ("presets of 'surefoot sweep':", "recurrent"),
    ]


def test_a_preset_is_shown_as_it_is(capsys):
    assert main(["presets", "CartPole-v1"]) == 0
    assert "env: {id: CartPole-v1}" in capsys.readouterr().out


def test_an_unknown_preset_suggests_the_nearest(capsys):
    assert main(["presets", "Cartpole-v1"]) == 2
    assert "unknown preset 'Cartpole-v1'; did you mean 'CartPole-v1'?" in capsys.readouterr().err


def test_the_default_is_a_preset():
    assert DEFAULT in preset_names()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_valid_config(name):
    register_envs()
    register_installed_games()
    config = build_config(load_preset(name))
    assert config.train.steps >= 10_000
    assert config.env.id in gym.registry or config.env.id.startswith("pettingzoo:")
    # Named after its env, or after what it is about; never after another env.
    assert config.env.id in (name, name.rpartition("/")[0]) or name not in gym.registry


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_trains(name):
    tiny = {"num_envs": 2, "num_steps": 8, "batch_size": 8, "epochs": 1, "eval_episodes": 0}
    if name in NEEDS_BOX2D and not HAS_BOX2D:
        with pytest.raises(EnvError, match=r"could not be created: .*pip install"):
            PPO(name, **tiny)
        return
    agent = PPO(name, **tiny)
    before = {key: value.clone() for key, value in agent.policy.state_dict().items()}
    agent.learn(16)
    after = agent.policy.state_dict()
    assert any(not before[key].equal(after[key]) for key in before)
    assert all(value.isfinite().all() for value in after.values())
    agent.close()
