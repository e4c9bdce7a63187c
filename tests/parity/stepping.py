"""A native env and Gymnasium's own, from the same seeds with the same actions, side by side."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from surefoot.envs import native

Actions = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]


def random_actions(env: gym.vector.VectorEnv) -> Actions:
    """Uniform over the action space, whatever is seen."""
    space = env.single_action_space
    if isinstance(space, gym.spaces.Box):
        return lambda obs, random: random.uniform(space.low, space.high, (len(obs), *space.shape)).astype(np.float32)
    return lambda obs, random: random.integers(0, space.n, len(obs))


def policy_actions(env: gym.vector.VectorEnv) -> Actions:
    """A fixed linear policy of the observation, squashed: smooth and far from uniform."""
    space = env.single_action_space
    size = int(np.prod(env.single_observation_space.shape))
    weights = np.random.default_rng(5).normal(size=(size, getattr(space, "n", None) or space.shape[0])) / np.sqrt(size)
    if isinstance(space, gym.spaces.Box):
        middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
        return lambda obs, random: (middle + half * np.tanh(obs.reshape(len(obs), -1) @ weights)).astype(np.float32)
    return lambda obs, random: (obs.reshape(len(obs), -1) @ weights).argmax(1)


def compare(
    env_id: str,
    steps: int,
    actions: Callable[[gym.vector.VectorEnv], Actions] = random_actions,
    num_envs: int = 4,
    tolerance: float = 0.0,
    **kwargs: Any,
) -> int:
    """Step both until `steps` env steps are compared, bit for bit unless a tolerance says otherwise; how many resets."""
    ours = native.make(env_id, num_envs, **kwargs)
    theirs = [gym.make(env_id, disable_env_checker=True, **kwargs) for _ in range(num_envs)]
    obs = ours.reset(seed=31)[0]
    for env, one in enumerate(theirs):
        equal(obs[env], one.reset(seed=31 + env)[0], tolerance, "first observation")
    choose, random, resets = actions(ours), np.random.default_rng(7), 0
    for step in range(-(-steps // num_envs)):
        chosen = choose(obs, random)
        obs, reward, terminated, truncated, info = ours.step(chosen)
        for env, one in enumerate(theirs):
            place = f"step {step} of env {env}"
            expected, expected_reward, *ends, _ = one.step(chosen[env])
            assert [bool(end) for end in ends] == [terminated[env], truncated[env]], f"flags at {place}"
            equal(reward[env], expected_reward, tolerance, f"reward at {place}")
            if any(ends):
                equal(info["final_obs"][env], expected, tolerance, f"final observation at {place}")
                expected, resets = one.reset()[0], resets + 1
            equal(obs[env], expected, tolerance, f"observation at {place}")
    ours.close()
    return resets


def equal(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """To the last bit, or within a relative tolerance."""
    one, other = np.asarray(ours), np.asarray(theirs)
    assert one.shape == other.shape, what
    if tolerance == 0.0:
        assert np.array_equal(one, other), f"{what}: {one} is not {other}"
    else:
        scale = np.maximum(1.0, np.abs(other))
        assert (np.abs(one - other) <= tolerance * scale).all(), f"{what}: {one} is not {other}"
