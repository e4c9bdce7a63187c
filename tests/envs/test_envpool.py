"""EnvPool's tasks beside Gymnasium's own and beside a bare pool with the same seeds."""

import re
import sys
from pathlib import Path
from typing import Any

import envpool
import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot.data.tree import tree_items
from surefoot.envs.adapters.envpool import EnvPoolEnvs
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.protocol import VecEnv, new_slot
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError
from surefoot.learning.scorer import Scorer
from surefoot.philox import Stream, derived_seed
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig, PPOConfig
from tests.envs.tasks import opened
from tests.rollout.known_policies import KnownPolicy
from tests.running_threads import running_threads, settled_threads

FIELDS = ("obs", "reward", "terminated", "truncated", "valid")
Seen = dict[str, np.ndarray]


def pool(task: str = "CartPole-v1", num_envs: int = 3, seed: int = 3, **settings: Any) -> EnvPoolEnvs:
    return EnvPoolEnvs(task, EnvConfig(**settings), num_envs, seed)


def pushes(num_rows: int, turn: int) -> np.ndarray:
    """Actions that depend on row and turn, so that a row that gets another's is found out."""
    return (np.arange(num_rows) + turn // (2 + np.arange(num_rows))) % 2


def run(env: VecEnv, num_steps: int) -> list[Seen]:
    slot = opened(env)
    steps = [{name: np.copy(getattr(slot, name)) for name in FIELDS}]
    for turn in range(num_steps):
        env.step(pushes(env.num_rows, turn), slot)
        check_step(env, slot, turn)
        seen = {name: np.copy(getattr(slot, name)) for name in FIELDS}
        steps.append(seen | {"final_obs": np.copy(env.final_obs)})
    return steps


class KnownStarts(gym.Wrapper[Any, Any, Any, Any]):
    """A CartPole whose episodes begin in given states."""

    def __init__(self, starts: list[np.ndarray], limit: int) -> None:
        super().__init__(gym.make("CartPole-v1", max_episode_steps=limit))
        self._starts, self._episode = starts, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._episode = 0 if seed is not None else self._episode + 1
        # The last episode may begin after all that is compared.
        start = self._starts[min(self._episode, len(self._starts) - 1)]
        self.unwrapped.state = start.astype(np.float64)
        return start.copy(), {}


@pytest.mark.parametrize("limit", [500, 11])
def test_the_same_as_gymnasium_s_cartpole_in_next_step_mode(limit):
    """Gymnasium's envs begin where EnvPool's began; all else must follow, row by row."""
    steps = run(pool(max_episode_steps=limit), 90)
    starts: list[list[np.ndarray]] = [[row] for row in steps[0]["obs"]]
    for step in steps[1:]:
        for row in np.flatnonzero(~step["valid"]):
            starts[row].append(step["obs"][row])
    assert min(len(of_row) for of_row in starts) >= 3
    makers = [lambda of_row=of_row: KnownStarts(of_row, limit) for of_row in starts]
    vector = GymnasiumVectorEnv(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.NEXT_STEP), seed=0)
    ended = np.zeros(3, dtype=bool)
    for turn, (ours, theirs) in enumerate(zip(steps, run(vector, 90), strict=True)):
        for name in ("reward", "truncated", "terminated", "valid")[: 4 if turn else 0]:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=f"{name} in step {turn}")
        np.testing.assert_allclose(ours["obs"], theirs["obs"], atol=1e-4, err_msg=f"obs in step {turn}")
        if turn:
            now = ours["terminated"] | ours["truncated"]
            np.testing.assert_allclose(ours["final_obs"][now], theirs["final_obs"][now], atol=1e-4)
            ended |= now
    assert ended.all()


def test_a_time_limit_is_a_truncation_and_the_step_after_it_counts_nowhere():
    steps = run(pool(max_episode_steps=4), 10)[1:]
    assert [bool(step["valid"][1]) for step in steps] == [True] * 4 + [False] + [True] * 4 + [False]
    assert [bool(step["truncated"][1]) for step in steps] == ([False] * 3 + [True, False]) * 2
    assert not any(step["terminated"].any() for step in steps)
    np.testing.assert_array_equal(steps[3]["final_obs"], steps[3]["obs"])
    assert (steps[4]["obs"] != steps[3]["obs"]).any(axis=1).all(), "the reset"


def test_a_pole_that_falls_in_the_step_of_the_limit_is_called_truncated():
    """EnvPool does not tell the two apart there, and the guide says so. If this fails, it has learned to."""
    fall = next(turn for turn, step in enumerate(run(pool(num_envs=1), 100)) if step["terminated"].any())
    last = run(pool(num_envs=1, max_episode_steps=fall), fall)[-1]
    assert abs(last["final_obs"][0, 2]) > 0.2095
    assert (last["terminated"][0], last["truncated"][0]) == (False, True)


def test_truncation_as_termination():
    steps = run(pool(max_episode_steps=2, truncation_as_termination=True), 2)
    assert steps[2]["terminated"].all()
    assert not steps[2]["truncated"].any()


def test_rows_do_not_depend_on_their_number_or_the_threads():
    """S13."""
    few, many = (
        run(pool(num_envs=2, kwargs={"num_threads": 1}), 40),
        run(pool(num_envs=5, kwargs={"num_threads": 3}), 40),
    )
    for step, other in zip(few, many, strict=True):
        for name, value in step.items():
            np.testing.assert_array_equal(value, other[name][:2], err_msg=name)


def test_row_i_is_seeded_from_the_seed_and_i():
    env = pool(seed=6)
    seeds = [derived_seed(6, row, Stream.ENV_SEED) for row in range(3)]
    bare = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=3, env_seed=seeds)
    np.testing.assert_array_equal(opened(env).obs, quiet(bare.reset)[0])
    assert env.describe(2) == f"env 2 (seed {seeds[2]})"


def test_reset_starts_anew_and_at_a_later_step_otherwise():
    env = pool()
    for before, after in zip(run(env, 25), run(env, 25), strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    first, later = opened(env), new_slot(3, env.obs_spec, 0)
    env.reset(later, 512)
    assert (first.obs != later.obs).any(axis=1).all()


def quiet(function: Any, *arguments: Any) -> Any:
    """EnvPool's spaces warn of their precision when they are first made."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        ("FrozenLake-v1", "discrete"),
        ("Blackjack-v1", "box"),
        ("Pendulum-v1", "box"),
        ("HalfCheetah-v5", "box"),
        ("Pong-v5", "image"),
        ("MiniGrid-Empty-5x5-v0", "dict"),
    ],
)
def test_every_kind_of_observation_is_that_of_a_bare_pool(task, kind):
    """Same seeds, same actions; Pendulum and HalfCheetah act in float32 and float64."""
    env = pool(task, num_envs=2)
    assert kind == ("dict" if isinstance(env.obs_spec, dict) else env.obs_spec.kind)
    seeds = [derived_seed(3, row, Stream.ENV_SEED) for row in range(2)]
    bare = envpool.make(task, env_type="gymnasium", num_envs=2, env_seed=seeds)
    space = quiet(lambda: bare.action_space)
    space.seed(4)
    slot, (obs, _) = opened(env), quiet(bare.reset)
    for _ in range(12):
        for key, leaf in tree_items(slot.obs):
            np.testing.assert_array_equal(leaf, np.asarray(obs[key] if key else obs, leaf.dtype), err_msg=key)
        actions = np.stack([space.sample() for _ in range(2)])
        env.step(actions.astype(np.float32 if actions.dtype.kind == "f" else np.int64), slot)
        # Policies act in float32, so the bare pool must be given the same numbers.
        given = actions.astype(np.float32).astype(space.dtype)
        obs, reward, terminated, truncated, _ = bare.step(given)
        np.testing.assert_array_equal(slot.reward, reward)
        np.testing.assert_array_equal(slot.ended, terminated | truncated)
    env.close()


def test_masks_in_the_observation_are_action_masks():
    env = pool("Game2048-v1", num_envs=2)
    assert env.mask_size == 4
    slot = opened(env)
    assert slot.action_mask is not None
    was_forbidden = False
    for turn in range(40):
        np.testing.assert_array_equal(slot.action_mask, slot.obs["action_mask"].astype(bool) | slot.ended[:, None])
        was_forbidden |= not slot.action_mask.all()
        env.step(slot.action_mask.argmax(1), slot)
        check_step(env, slot, turn)
    assert was_forbidden


def test_rollouts_leave_out_resets_across_their_boundary():
    """Episodes of 4 steps in rollouts of 4: each begins with a reset that counts nowhere, but the first."""
    env = pool(num_envs=2, max_episode_steps=4)
    policy = KnownPolicy(
        env.action_spec, value=lambda obs: obs[..., 0] + 3, choose=lambda obs: (obs[..., 2] > 0).long()
    )
    collector = StepwiseCollector(env, policy, 4, seed=0)
    first = collector.collect(policy)
    assert first.valid.all()
    assert first.truncated[3].all()
    np.testing.assert_allclose(first.final_value[3], env.final_obs[:, 0] + 3, rtol=1e-6)
    second = collector.collect(policy)
    assert second.valid[:, 0].tolist() == [False, True, True, True]
    assert second.episode_start[:, 0].tolist() == [True, True, False, False]
    assert second.num_steps == 6
    # By hand, lambda 1 and gamma 1: three rewards of 1, V of what follows, less V of the start.
    config = PPOConfig(gamma=1.0, gae_lambda=1.0, advantage_norm="none")
    advantage = Scorer(config, None).score(second, critic=None).advantage  # GAE asks no critic
    torch.testing.assert_close(advantage[1], 3 + second.last_value - second.value[1])
    assert not advantage[0].any()


def test_close_releases_the_threads():
    before = settled_threads()
    for _ in range(5):
        env = pool(kwargs={"num_threads": 2})
        assert running_threads() >= before + 2
        run(env, 2)
        env.close()
        env.close()
    assert settled_threads() <= before


def test_it_cannot_say_what_state_it_is_in():
    assert pool().save_state() is None


@pytest.mark.parametrize(
    ("task", "kwargs", "message"),
    [
        ("CartPol-v1", {}, "EnvPool has no task 'CartPol-v1'; did you mean 'envpool:CartPole-v1'? (envpool.list_all"),
        ("cartpole-v1", {}, "did you mean 'envpool:CartPole-v1'?"),
        (
            "CartPole-v1",
            {"gravity_of_the_moon": 1},
            "'envpool:CartPole-v1' does not accept env.kwargs {'gravity_of_the_moon': 1}: ",
        ),
        ("CartPole-v1", {"batch_size": 1}, "env.kwargs: Surefoot itself sets EnvPool's batch_size; remove it"),
        ("Go9x9-v1", {}, "EnvPool's 'Go9x9-v1' has 2 players; choose a single-player task"),
        ("VizdoomCustom-v1", {}, "'envpool:VizdoomCustom-v1' could not be created: "),
    ],
)
def test_tasks_and_arguments_that_are_refused(task, kwargs, message):
    with pytest.raises(EnvError) as caught:
        pool(task, kwargs=kwargs)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arguments_reach_the_task():
    camera = pool("Pong-v5", num_envs=1, kwargs={"img_height": 40, "img_width": 42, "stack_num": 2})
    assert camera.obs_spec.shape == (2, 40, 42)


def test_without_envpool_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "envpool", None)
    with pytest.raises(EnvError, match=r"'envpool:CartPole-v1' requires EnvPool; run `pip install .*'\.\[envpool\]'"):
        pool()


def test_the_robots_that_the_docs_name_exist():
    page = (Path(__file__).parents[2] / "docs" / "from_rsl_rl.md").read_text(encoding="utf-8")
    robots = page.partition("## Robots")[2].partition("## ")[0]
    named = set(re.findall(r"\w+-v1", robots))
    assert len(named) > 20
    assert named <= set(envpool.list_all_envs())
