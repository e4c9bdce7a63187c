"""`predict`: observations as envs give them in, actions as envs take them out."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.errors import EnvError, PolicyError
from tests.envs.tasks import ACTIONS, FORMS, CounterEnv, MaskMethodEnv

TINY = {"num_envs": 2, "num_steps": 8, "batch_size": 8, "epochs": 1, "hidden": 4, "eval_episodes": 0}


def agent_for(form: str = "vector", actions: str = "discrete", kind: type = CounterEnv) -> PPO:
    return PPO(lambda: kind(form=form, actions=actions), **TINY)


def stacked(observations: list[Any]) -> Any:
    """Observations as a batch, through dicts and tuples."""
    first = observations[0]
    if isinstance(first, dict):
        return {key: stacked([obs[key] for obs in observations]) for key in first}
    if isinstance(first, tuple):
        return tuple(stacked([obs[index] for obs in observations]) for index in range(len(first)))
    return np.stack(observations)


@pytest.mark.parametrize("form", FORMS)
def test_one_observation_or_a_batch(form):
    agent = agent_for(form)
    env = CounterEnv(index=1, form=form)
    observations = [env.reset(seed=3)[0], *(env.step(0)[0] for _ in range(2))]
    singles = [agent.predict(obs)[0] for obs in observations]
    batch, _ = agent.predict(stacked(observations))
    assert batch.shape == (3,)
    assert [int(action) for action in batch] == [int(action) for action in singles]
    assert all(np.shape(action) == () for action in singles)


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("deterministic", [True, False])
def test_actions_are_what_the_env_takes(actions, deterministic):
    space = ACTIONS[actions]
    agent = agent_for(actions=actions)
    obs = CounterEnv().reset(seed=1)[0]
    for _ in range(20):
        action, _ = agent.predict(obs, deterministic=deterministic)
        action = np.asarray(action, dtype=space.dtype)
        assert space.contains(action if space.shape else action[()]), action
    batch, _ = agent.predict(np.stack([obs] * 5), deterministic=deterministic)
    assert batch.shape == (5, *space.shape)


def test_a_shifted_choice_starts_where_the_space_does():
    agent = agent_for(actions="shifted discrete")
    drawn = {int(agent.predict(CounterEnv().reset(seed=1)[0], deterministic=False)[0]) for _ in range(100)}
    assert drawn == {-1, 0, 1, 2}


def test_an_env_is_played_to_its_end():
    agent = PPO("CartPole-v1", **TINY).learn(16)
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=5)
    state, start, total = None, True, 0.0
    while True:
        action, state = agent.predict(obs, state, start)
        obs, reward, terminated, truncated, _ = env.step(action)
        total, start = total + float(reward), terminated or truncated
        if start:
            break
    assert total >= 5


def test_deterministic_is_the_default_and_repeats():
    agent = PPO("Pendulum-v1", **TINY)
    obs = np.ones(3, dtype=np.float32)
    first = agent.predict(obs)[0]
    assert all(np.array_equal(agent.predict(obs)[0], first) for _ in range(5))
    assert not np.array_equal(agent.predict(obs, deterministic=False)[0], first)


def test_sampling_varies_from_call_to_call_and_repeats_with_the_seed():
    obs = np.zeros((6, 3), dtype=np.float32)

    def draws(seed: int) -> list[np.ndarray]:
        agent = PPO("Pendulum-v1", **TINY, seed=seed)
        return [agent.predict(obs, deterministic=False)[0] for _ in range(3)]

    first = draws(1)
    assert not np.array_equal(first[0], first[1])
    assert len(np.unique(first[0])) == 6, "each row draws its own"
    assert all(np.array_equal(a, b) for a, b in zip(first, draws(1), strict=True))
    assert not np.array_equal(first[0], draws(2)[0])


def test_sampling_follows_the_distribution():
    agent = PPO("Pendulum-v1", **TINY, policy={"log_std": -1.0, "action_bounds": "clip"})
    obs = np.zeros((4000, 3), dtype=np.float32)
    drawn, _ = agent.predict(obs, deterministic=False)
    mode, _ = agent.predict(obs[0])
    assert drawn.mean() == pytest.approx(mode.item(), abs=0.03)
    assert drawn.std() == pytest.approx(np.exp(-1), rel=0.05)


@pytest.mark.parametrize("deterministic", [True, False])
def test_masks_forbid(deterministic):
    agent = agent_for(kind=MaskMethodEnv)
    obs = np.zeros((50, 5), dtype=np.float32)
    mask = np.tile([True, False, True, False], (50, 1))
    actions, _ = agent.predict(obs, action_mask=mask, deterministic=deterministic)
    assert set(actions.tolist()) <= {0, 2}
    only, _ = agent.predict(obs[0], action_mask=np.array([0, 0, 0, 1], dtype=np.int8), deterministic=deterministic)
    assert only == 3


def test_a_policy_that_was_trained_with_masks_demands_one(tmp_path):
    agent, obs = agent_for(kind=MaskMethodEnv), np.zeros(5, dtype=np.float32)
    agent.save(tmp_path / "masked.safetensors")
    agent.save(tmp_path / "policy.safetensors", policy_only=True)
    loaded = PPO.load(tmp_path / "policy.safetensors")
    loaded.save(tmp_path / "again.safetensors", policy_only=True)
    for one in (agent, PPO.load(tmp_path / "masked.safetensors"), loaded, PPO.load(tmp_path / "again.safetensors")):
        with pytest.raises(PolicyError, match=r"trained with action masks: pass action_mask=, such as info\['action_m"):
            one.predict(obs)
        assert one.predict(obs, action_mask=np.ones(4))[0] in range(4)


def test_episode_starts_for_one_for_all_and_for_each():
    agent = agent_for()
    batch = np.zeros((3, 5), dtype=np.float32)
    for start in (None, True, False, np.array([True, False, True]), [False, False, True]):
        assert agent.predict(batch, episode_start=start)[0].shape == (3,)
    assert np.shape(agent.predict(batch[0], episode_start=np.array([True]))[0]) == ()


def test_other_dtypes_are_accepted():
    agent = PPO("CartPole-v1", **TINY)
    expected = agent.predict(np.array([0.5, -1.0, 0.25, 2.0], dtype=np.float32))[0]
    for obs in ([0.5, -1.0, 0.25, 2.0], (0.5, -1.0, 0.25, 2.0), np.array([0.5, -1.0, 0.25, 2.0])):
        assert agent.predict(obs)[0] == expected


@pytest.mark.parametrize("shape", [(), (3,), (5,), (2, 5), (2, 2, 4), (4, 2)])
def test_other_shapes_are_refused(shape):
    agent = PPO("CartPole-v1", **TINY)
    with pytest.raises(EnvError, match=r"has shape .*; the policy expects \(4,\), or a batch of it"):
        agent.predict(np.zeros(shape))


def test_a_missing_part_is_named():
    agent = agent_for("dict")
    with pytest.raises(EnvError, match="the observation has no luck"):
        agent.predict({"where": np.zeros(3, dtype=np.float32)})


def test_parts_are_batched_together_or_not_at_all():
    agent = agent_for("dict")
    with pytest.raises(EnvError, match="some components of the observation are batched"):
        agent.predict({"where": np.zeros((2, 3)), "luck": np.zeros(1)})


def test_acting_changes_nothing():
    agent = PPO("Pendulum-v1", **TINY, normalize={"obs": True}).learn(16)
    before = {name: value.clone() for name, value in agent.policy.state_dict().items()}
    for deterministic in (True, False):
        agent.predict(np.full((9, 3), 7.0), deterministic=deterministic)
    after = agent.policy.state_dict()
    assert all(after[name].equal(value) for name, value in before.items())


def test_what_is_returned_is_the_callers_own():
    agent = PPO("Pendulum-v1", **TINY)
    obs = np.zeros((2, 3), dtype=np.float32)
    action, _ = agent.predict(obs)
    action[:] = 9
    assert not np.array_equal(agent.predict(obs)[0], action)
    assert np.array_equal(obs, np.zeros((2, 3)))


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_memory_is_carried_and_forgotten(kind):
    agent = PPO("CartPole-v1", memory={"kind": kind, "hidden_size": 8}, seed=1)
    first, second = np.array([0.1, 0.2, 0.3, 0.4]), np.array([-0.5, 0.1, 0.2, -0.3])
    _, state = agent.predict(first)
    _, after = agent.predict(second, state)
    _, forgotten = agent.predict(second, state, episode_start=True)
    _, fresh = agent.predict(second)
    assert not torch.equal(after[0], fresh[0])
    assert all(torch.equal(one, other) for one, other in zip(forgotten, fresh, strict=True))
    _, both = agent.predict(np.stack((first, second)))
    assert [part.shape for part in both] == [(2, 1, 8)] * len(fresh)
    torch.testing.assert_close(both[0][:1], state[0])
    torch.testing.assert_close(both[0][1:], fresh[0])


def test_a_state_of_other_rows_is_refused():
    agent = PPO("CartPole-v1", memory="gru")
    _, state = agent.predict(np.zeros((3, 4)))
    with pytest.raises(
        PolicyError, match="does not fit 2 rows of this policy; pass the state that predict returned last"
    ):
        agent.predict(np.zeros((2, 4)), state)
    with pytest.raises(PolicyError, match="pass the state that predict returned last"):
        agent.predict(np.zeros((2, 4)), ())


@pytest.mark.parametrize(
    "state",
    [3, [None], [np.zeros((2, 1, 64))], [np.zeros((2, 1, 64), np.float32)] * 3, [np.zeros((2, 64), np.float32)]],
)
def test_what_is_no_state_is_refused(state):
    with pytest.raises(PolicyError, match="pass the state that predict returned last"):
        PPO("CartPole-v1", memory="gru").predict(np.zeros((2, 4)), state)


def test_a_state_may_be_of_numpy():
    agent = PPO("CartPole-v1", memory="gru")
    _, state = agent.predict(np.ones((2, 4)))
    expected = agent.predict(np.ones((2, 4)), state)[1]
    assert torch.equal(agent.predict(np.ones((2, 4)), [part.numpy() for part in state])[1][0], expected[0])


@pytest.mark.parametrize("start", [[True, False, True], np.ones((2, 1), bool), []])
def test_starts_of_other_rows_are_refused(start):
    with pytest.raises(PolicyError, match=r"episode_start must be one flag, or one per row \(2\), not shape"):
        agent_for().predict(np.zeros((2, 5), np.float32), episode_start=start)


def test_a_mask_of_other_choices_is_refused():
    with pytest.raises(PolicyError, match=r"must have 4 flags per row for 2 rows, not shape \(2, 3\)"):
        agent_for(kind=MaskMethodEnv).predict(np.zeros((2, 5), np.float32), action_mask=np.ones((2, 3), bool))


def test_no_observations_are_refused():
    with pytest.raises(EnvError, match="the batch of observations is empty"):
        PPO("CartPole-v1", **TINY).predict(np.zeros((0, 4)))
