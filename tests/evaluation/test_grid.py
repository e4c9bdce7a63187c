"""Evaluations over a grid of parameters and constructor arguments."""

import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

from surefoot import Evaluation, Grid
from surefoot.api import PPO
from surefoot.errors import ConfigError, EnvError
from surefoot.evaluation.grid import save_heat_map

TINY = {"num_envs": 1, "num_steps": 8, "batch_size": 8, "hidden": 8, "preset": "none"}
MEASURED = "tests.cli.measured_envs:Measured-v0"


@pytest.fixture(scope="module")
def agent():
    return PPO("Pendulum-v1", max_episode_steps=8, **TINY)


def test_every_cell_is_the_evaluation_with_its_arguments(agent):
    told: list[dict] = []
    grid = agent.evaluate_over({"g": [0.0, 10.0], "render_mode": [None, "rgb_array"]}, 3, seed=5, tell=told.append)
    for cell, found in grid:
        alone = PPO("Pendulum-v1", max_episode_steps=8, eval_kwargs=cell, **TINY)
        assert found == alone.evaluate(3, seed=5)
    assert told == [cell for cell, _ in grid]
    assert [cell["g"] for cell in told] == [0.0, 0.0, 10.0, 10.0], "the last name varies fastest"
    assert grid.at(g=0.0, render_mode=None) == grid.at(g=0.0, render_mode="rgb_array")
    assert grid.at(g=0.0, render_mode=None) != grid.at(g=10.0, render_mode=None)
    assert agent.config.env.eval_kwargs == {}


def test_parameters_of_the_env_are_set():
    agent = PPO(MEASURED, max_episode_steps=30, **TINY)
    grid = agent.evaluate_over({"push": np.array([1.0, 30.0])}, 2)
    assert grid.figure().shape == grid.figure("angle").shape == (2,)
    assert grid.at(push=1.0).rewards != grid.at(push=30.0).rewards


def test_parameters_of_native_envs_and_functions(agent):
    native = PPO("HalfCheetah-v5", max_episode_steps=3, **TINY).evaluate_over({"forward_reward_weight": [1, 2]}, 1)
    assert native.at(forward_reward_weight=1) != native.at(forward_reward_weight=2)
    made = PPO(partial(gym.make, MEASURED), **TINY)
    assert made.evaluate_over({"push": [1.0, 30.0]}, 2).figure().shape == (2,)
    with pytest.raises(EnvError, match="gravity: these envs declare no such parameter, and a function"):
        made.evaluate_over({"gravity": [1.0]}, 2)
    with pytest.raises(EnvError, match="cannot be created again for every cell"):
        made.evaluate_over({"push": [1.0]}, 2, env=gym.make(MEASURED))


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({}, "pass a dict from names to lists"),
        ([1], "pass a dict from names to lists"),
        ({"g": "abc"}, "g: pass a list of values"),
        ({"g": []}, "g: pass a list of values"),
        ({"g": [1, 1]}, "g: a value appears twice"),
        ({"g": range(100), "m": range(11)}, "1100 cells, but at most 1000"),
        ({"g": [object()]}, "must consist of numbers"),
    ],
)
def test_bad_grids_are_refused(agent, over, message):
    with pytest.raises((ConfigError, EnvError), match=message):
        agent.evaluate_over(over, 1)


def test_an_unknown_argument_is_named_with_its_cell(agent):
    with pytest.raises(EnvError, match=r"at g=1, gg=2: .*'gg'"):
        agent.evaluate_over({"g": [1], "gg": [2]}, 1)


def test_the_figures(tmp_path):
    cells = tuple(Evaluation((float(mean), mean + 2.0), (1, 1), {"win": (win, win)}) for mean, win in CELLS)
    grid = Grid({"level": (0, 1), "terrain": ("stairs", "gaps")}, cells)
    assert grid.figure().tolist() == [[1.0, 2.0], [4.0, 8.0]]
    assert grid.figure("worst_reward").tolist() == [[0.0, 1.0], [3.0, 7.0]]
    assert np.array_equal(grid.figure("win"), [[0.0, 1.0], [math.nan, 0.5]], equal_nan=True)
    assert repr(grid).splitlines() == [
        "mean_reward, 2 episodes per cell",
        "          terrain=stairs   terrain=gaps",
        "level=0            1 ± 1          2 ± 1",
        "level=1            4 ± 1          8 ± 1",
    ]
    assert [cell["at"] for cell in grid.to_json()["cells"]][2] == {"level": 1, "terrain": "stairs"}
    with pytest.raises(ConfigError, match="no figure 'wim'; did you mean 'win'"):
        grid.figure("wim")
    with pytest.raises(ConfigError, match=r"no cell level=7; it is over level 0, 1; terrain stairs, gaps"):
        grid.at(level=7)
    grid.save_heat_map(tmp_path / "map.png", "win")
    with Image.open(tmp_path / "map.png") as image:
        assert image.format == "PNG"


CELLS = ((0, 0.0), (1, 1.0), (3, math.nan), (7, 0.5))


def test_a_heat_map_is_darker_where_values_are_larger(tmp_path):
    values = np.array([[0.0, 1.0], [2.0, math.nan]])
    save_heat_map(tmp_path / "map.png", "figure", ["a", "b"], ["x", "y"], values)
    with Image.open(tmp_path / "map.png") as image:
        colors = {color for _, color in image.getcolors(100_000)}
    assert {(240, 245, 250), (129, 160, 190), (18, 74, 130), (225, 225, 225)} <= colors
    for wrong in ("map.jpg", "nowhere/map.png"):
        with pytest.raises(ConfigError, match="heat map: "):
            save_heat_map(tmp_path / wrong, "figure", ["a"], ["x"], values[:1, :1])
