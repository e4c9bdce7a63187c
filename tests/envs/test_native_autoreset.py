"""Native vector envs in every autoreset mode, beside Gymnasium's own vector env in that mode."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

from surefoot.api import PPO
from surefoot.data.tree import tree_items
from surefoot.envs import native
from surefoot.envs.tasks.registration import register_envs
from surefoot.errors import NativeError

MODES = list(AutoresetMode)
IDS = {"CartPole-v1": 120, "Probe-v0": 60, "MountainCarContinuous-v0": 60}
"""Episodes that end on their own, that have action masks and Dict observations, and that reach their limit."""
LIMIT = {"MountainCarContinuous-v0": {"max_episode_steps": 7}}
ROWS = 3
Vector = VectorEnv[Any, Any, Any]


def ours(env_id: str, mode: AutoresetMode | str) -> Vector:
    return native.make(env_id, ROWS, autoreset_mode=mode, **LIMIT.get(env_id, {}))


def gymnasiums(env_id: str, mode: AutoresetMode) -> Vector:
    register_envs()
    return SyncVectorEnv([lambda: gym.make(env_id, **LIMIT.get(env_id, {}))] * ROWS, autoreset_mode=mode)


def played(envs: Vector, steps: int, seed: int = 5) -> list[tuple[Any, ...]]:
    """Observations, rewards and flags under random actions that depend on nothing but the seed."""
    obs, _ = envs.reset(seed=seed)
    seen: list[tuple[Any, ...]] = [(obs,)]
    envs.action_space.seed(seed)
    for _ in range(steps):
        obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        ended = terminated | truncated
        final = (
            info["final_obs"] if envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP and ended.any() else None
        )
        seen.append((obs, reward, terminated, truncated, final))
        if envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED and ended.any():
            seen.append((envs.reset(options={"reset_mask": ended})[0],))
    return seen


def same_bits(one: Any, other: Any) -> bool:
    pairs = list(zip(tree_items(one), tree_items(other), strict=True))
    return all(left[0] == right[0] and np.array_equal(left[1], right[1]) for left, right in pairs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", IDS)
def test_a_mode_is_as_gymnasium_has_it(env_id, mode):
    steps, ends = IDS[env_id], 0
    pairs = zip(played(ours(env_id, mode), steps), played(gymnasiums(env_id, mode), steps), strict=True)
    for (obs, *rest), (expected, *others) in pairs:
        assert same_bits(obs, expected)
        for one, other in zip(rest[:3], others[:3], strict=True):
            assert np.array_equal(one, other)
        if rest:
            ended = rest[1] | rest[2]
            ends += int(ended.sum())
        if rest and rest[3] is not None:
            for row in np.flatnonzero(ended):
                for key, leaf in tree_items(rest[3]):
                    assert np.array_equal(leaf[row], others[3][row][key] if key else others[3][row])
    assert ends > ROWS, "every env ends, and one of them twice"


def test_gymnasiums_vector_wrappers_see_what_they_see_of_its_own_envs():
    wrapped = [
        RecordEpisodeStatistics(NormalizeObservation(make("CartPole-v1", AutoresetMode.NEXT_STEP)))
        for make in (ours, gymnasiums)
    ]
    found: list[list[Any]] = [[], []]
    for envs, record in zip(wrapped, found, strict=True):
        obs, _ = envs.reset(seed=2)
        envs.action_space.seed(2)
        for _ in range(80):
            obs, *_, info = envs.step(envs.action_space.sample())
            if "episode" in info:
                record.append((info["episode"]["r"].tolist(), info["episode"]["l"].tolist()))
        record.append(obs.tolist())
    assert found[0] == found[1]
    assert len(found[0]) > ROWS
    with pytest.raises(ValueError, match=r"(?i)autoreset"):
        NormalizeObservation(ours("CartPole-v1", AutoresetMode.SAME_STEP))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "Probe-v0"])
def test_a_saved_state_includes_the_envs_that_rest(env_id, mode):
    envs, other = ours(env_id, mode), ours(env_id, mode)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    ended = np.zeros(ROWS, dtype=bool)
    while not ended.any():
        *_, terminated, truncated, _ = envs.step(envs.action_space.sample())
        ended = terminated | truncated
    other.load_state(envs.save_state())
    after = []
    for each in (envs, other):
        shown = [each.reset(options={"reset_mask": ended})] if mode is AutoresetMode.DISABLED else []
        each.action_space.seed(3)
        obs, reward, *_, info = each.step(each.action_space.sample())
        after.append((shown, obs, reward, info))
    assert same_bits(after[0][1], after[1][1])
    assert after[0][2].tolist() == after[1][2].tolist()
    assert str(after[0]) == str(after[1]), "also masks, and what a reset shows"


def test_a_state_of_another_mode_is_refused():
    next_step, same_step = ours("CartPole-v1", "NextStep"), ours("CartPole-v1", "SameStep")
    for envs in (next_step, same_step):
        envs.reset(seed=0)
    with pytest.raises(NativeError, match="load_state: pass what save_state returned for these envs"):
        next_step.load_state(same_step.save_state())
    with pytest.raises(NativeError, match="cannot continue from the state"):
        same_step.load_state(next_step.save_state())
    broken = next_step.save_state()
    broken[0, same_step.save_state().shape[1]] = 0.5
    with pytest.raises(NativeError, match="flags must be 0 or 1"):
        next_step.load_state(broken)


def test_without_autoreset_an_env_that_ended_must_be_reset():
    envs = ours("MountainCarContinuous-v0", AutoresetMode.DISABLED)
    envs.reset(seed=0)
    for _ in range(7):
        envs.step(np.zeros((ROWS, 1), np.float32))
    with pytest.raises(NativeError, match=r"env 0 has ended; reset it before the next step: reset\(options="):
        envs.step(np.zeros((ROWS, 1), np.float32))
    for wrong in ([True, False, False], np.zeros(ROWS, bool), np.ones(2, bool)):
        with pytest.raises(NativeError, match="reset_mask must mark at least one of the 3 envs"):
            envs.reset(options={"reset_mask": wrong})


def test_a_reset_with_a_mask_and_seeds_starts_only_the_marked_envs():
    mask = np.array([False, True, False])
    shown = []
    for envs in (ours("CartPole-v1", AutoresetMode.DISABLED), gymnasiums("CartPole-v1", AutoresetMode.DISABLED)):
        envs.reset(seed=0)
        envs.step(np.array([0, 1, 0]))
        shown.append([envs.reset(seed=9, options={"reset_mask": mask})[0], envs.step(np.array([1, 1, 1]))[0]])
        shown[-1].append(envs.reset(options={"reset_mask": mask})[0])
    assert np.array_equal(shown[0], shown[1])


def test_an_unknown_mode_is_refused():
    with pytest.raises(NativeError, match=r"autoreset_mode must be one of AutoresetMode\.NEXT_STEP, .*, not 'later'"):
        native.make("CartPole-v1", 2, autoreset_mode="later")


def test_the_mode_does_not_change_what_an_agent_learns_where_no_step_is_lost():
    weights = {}
    for mode in MODES:
        agent = PPO(ours("Probe-v0", mode), num_steps=32, batch_size=48, epochs=1, eval_episodes=0).learn(96)
        weights[mode] = torch.cat([value.flatten() for value in agent.policy.state_dict().values()])
        assert weights[mode].isfinite().all()
    assert weights[AutoresetMode.SAME_STEP].equal(weights[AutoresetMode.DISABLED])
    assert not weights[AutoresetMode.SAME_STEP].equal(weights[AutoresetMode.NEXT_STEP]), "it has steps that only reset"
