"""Functions act in rows, and rows are ordered by env, then by agent."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.envs.make import make_vec_env
from surefoot.errors import PolicyError
from surefoot.evaluation.evaluation import Evaluation
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig
from tests.envs.tasks import SavingEnv, counters
from tests.rollout.test_rows import SavingMaskEnv, actor_critic


class Team:
    """Two agents, of which one is not in alphabetical order; notes what each was told to do."""

    metadata = {"name": "team", "render_modes": []}
    possible_agents = ["walker", "archer"]

    def __init__(self, number: int) -> None:
        self.number, self.agents, self.played = number, [], []

    @property
    def unwrapped(self) -> "Team":
        return self

    def observation_space(self, agent: str) -> spaces.Box:
        return spaces.Box(0, 10, (2,), np.float32)

    def action_space(self, agent: str) -> spaces.Discrete:
        return spaces.Discrete(5, start=1)

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        return self._all(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        self.played.append({agent: int(action) for agent, action in actions.items()})
        none = dict.fromkeys(self.agents, False)
        return self._all(), dict.fromkeys(self.agents, 0.0), none, none, {agent: {} for agent in self.agents}

    def _all(self) -> dict[str, Any]:
        return {agent: np.array([self.number, place]) for place, agent in enumerate(self.possible_agents)}

    def close(self) -> None:
        pass


def test_rows_are_ordered_by_env_then_by_agent_and_functions_act_in_them() -> None:
    teams = [Team(number) for number in range(3)]
    env = make_vec_env([lambda one=one: one for one in teams], EnvConfig(), 3, seed=1)
    policy = actor_critic(env)
    collector = StepwiseCollector(env, policy, 4, seed=4)
    seen = []

    def scripted(obs: np.ndarray) -> np.ndarray:
        seen.append(obs.copy())
        obs[:] = 0  # its own copy
        return 1 + seen[-1][:, 0].astype(int)

    collector.rows.actors.add("scripted", scripted)
    collector.rows.actors.assign(slice(1, None, 2), "scripted")
    rollout = collector.collect(policy)
    assert rollout.obs[0].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]]
    assert all((obs == [[0, 1], [1, 1], [2, 1]]).all() for obs in seen), "every second row is the second agent"
    assert all(step["archer"] == 1 + team.number for team in teams for step in team.played)
    assert rollout.valid.float().mean(0).tolist() == [1, 0, 1, 0, 1, 0], "rows of functions are not learned from"
    assert rollout.extras["actor"].unique(dim=0).tolist() == [[0, 1, 0, 1, 0, 1]]
    assert rollout.action[:, 1::2].unique(dim=0).tolist() == [[0, 1, 2]], "raw actions begin with 0"


def test_functions_get_dicts_and_masks() -> None:
    masked = StepwiseCollector(
        counters(3, SavingMaskEnv), policy := actor_critic(counters(3, SavingMaskEnv)), 5, seed=4
    )
    masked.rows.actors.add("first", lambda obs, mask: mask.argmax(1))
    masked.rows.actors.assign([0, 2], "first")
    masked.collect(policy)
    nested = StepwiseCollector(
        counters(3, SavingEnv, form="nested"), policy := actor_critic(counters(3, SavingEnv, form="nested")), 5, seed=4
    )
    shapes = []

    def look(obs: dict[str, Any]) -> Any:
        shapes.append({key: type(leaf).__name__ for key, leaf in obs.items()})
        return np.zeros(2, dtype=int)

    nested.rows.actors.add("look", look)
    nested.rows.actors.assign([0, 2], "look")
    nested.collect(policy)
    assert shapes[0]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda obs: np.zeros((len(obs), 2)), r"'bad' must return env actions of shape \(2,\).*not float64 of shape"),
        (lambda obs: np.full(len(obs), 7), "'bad' returned 7 for row 0, which is not .* whole numbers from 0 to 1$"),
        (lambda obs: np.array([0, 0.5]), "'bad' returned 0.5 for row 2, which is not in the action space"),
        (lambda obs: [[1], [1, 2]], "'bad' must return env actions of shape"),
        (lambda obs: None, "'bad' must return env actions of shape .* not None"),
        (lambda obs: 1 / 0, "'bad' raised an exception: ZeroDivisionError"),
        ("name", "'bad' must be a policy or a function of observations, not 'name'"),
    ],
)
def test_functions_that_do_not_act_are_refused(function: Any, problem: str) -> None:
    env = make_vec_env("CartPole-v1", EnvConfig(), 3, seed=1)
    collector = StepwiseCollector(env, policy := actor_critic(env), 2, seed=4)

    def act() -> None:
        collector.rows.actors.add("bad", function)
        collector.rows.actors.assign([0, 2], "bad")
        collector.collect(policy)

    with pytest.raises(PolicyError, match=problem):
        act()


class Mixed(gym.Env[Any, Any]):
    """Notes the actions of any action space."""

    observation_space = spaces.Box(-1, 1, (2,))

    def __init__(self, action_space: Any, mask: Any = None) -> None:
        self.action_space, self.played, self._info = action_space, [], {} if mask is None else {"action_mask": mask}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(2, np.float32), self._info

    def step(self, action: Any) -> Any:
        self.played.append(action)
        return np.zeros(2, np.float32), 0.0, False, False, self._info


PAIR = spaces.Tuple((spaces.Discrete(3, start=4), spaces.Box(-1, 1, (2,))))
NAMED = spaces.Dict({"kind": spaces.Discrete(3, start=4), "push": spaces.Box(-1, 1, (2,))})


def play(space: Any, function: Any, mask: Any = None) -> list[Any]:
    """The actions that two envs of this space got in two steps."""
    envs = [Mixed(space, mask) for _ in range(2)]
    env = make_vec_env([lambda one=one: one for one in envs], EnvConfig(), 2, seed=1)
    collector = StepwiseCollector(env, policy := actor_critic(env), 2, seed=4)
    collector.rows.actors.add("f", function)
    collector.rows.actors.assign([0, 1], "f")
    rollout = collector.collect(policy)
    assert (rollout.extras["actor"] == 1).all()
    return [action for one in envs for action in one.played]


@pytest.mark.parametrize("space", [PAIR, NAMED], ids=["tuple", "dict"])
def test_functions_act_in_spaces_of_several_components(space: Any) -> None:
    """Flat, or in the form of the space; categories count from the start of theirs."""
    split = {"kind": np.array([5, 6]), "push": np.full((2, 2), 0.5)}
    parts = split if space is NAMED else tuple(split.values())
    flat = np.array([[5, 0.5, 0.5], [6, 0.5, 0.5]])
    for function in (lambda obs: flat, lambda obs: parts):
        played = play(space, function)
        assert all(space.contains(action) for action in played)
        assert [int(action["kind"] if space is NAMED else action[0]) for action in played] == [5, 5, 6, 6]


@pytest.mark.parametrize(
    ("space", "returned", "problem"),
    [
        (PAIR, [1, 0, 0], "'f' returned 1 for row 0 in component '0', .* whole numbers from 4 to 6$"),
        (PAIR, [5, 0, 7], "'f' returned 7 for row 0 in component '1' at element 1, .* from -1.0 to 1.0$"),
        (PAIR, [np.nan, 0, 0], "'f' returned nan for row 0 in component '0'"),
        (PAIR, [4.5, 0, 0], "'f' returned 4.5 for row 0 in component '0'"),
        (spaces.Box(-1, 1, (2,)), [7, 0], "'f' returned 7 for row 0 at element 0, .* from -1.0 to 1.0$"),
        (spaces.MultiBinary(2), [0, 2], "'f' returned 2 for row 0 at element 1"),
    ],
)
def test_values_that_are_not_in_the_space_name_function_row_and_part(space: Any, returned: Any, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        play(space, lambda obs: np.tile(returned, (len(obs), 1)))


def test_parts_that_are_missing_are_named() -> None:
    with pytest.raises(
        PolicyError, match=r"must return the components kind, push, .* flat or as a dict of arrays, not \{"
    ):
        play(NAMED, lambda obs: {"kind": [4, 4]})


def test_what_a_mask_forbids_is_refused() -> None:
    """And what it allows is taken, in every part."""
    mask = (np.array([True, False, True]), None)
    with pytest.raises(PolicyError, match=r"'f' returned 5 for row 0 in component '0', which the action mask forbids"):
        play(PAIR, lambda obs, mask: np.tile([5, 0, 0], (len(obs), 1)), mask)
    assert len(play(PAIR, lambda obs, mask: np.tile([6, 0, 0], (len(obs), 1)), mask)) == 4
    with pytest.raises(PolicyError, match="'f' returned 2 for row 0, which the action mask forbids"):
        play(spaces.Discrete(3), lambda obs, mask: np.full(len(obs), 2), np.array([True, True, False]))


def test_missing_values_are_counted_beside_a_mean() -> None:
    nan = float("nan")
    played = Evaluation((1.0,) * 4, (5,) * 4, {"win": (1.0, nan, 0.0, nan), "miss": (2.0,) * 4, "none": (nan,) * 4})
    assert "win 0.5 (of 2, 2 missing), miss 2, none unknown" in played.description
    assert {name: one["missing"] for name, one in played.to_json()["metrics"].items()} == {
        "win": 2,
        "miss": 0,
        "none": 4,
    }
