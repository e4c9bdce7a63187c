"""A native env and Gymnasium's own, from the same seeds with the same actions, side by side."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from surefoot.envs import native

Actions = Callable[[Any, np.random.Generator], NDArray[Any]]


def flat(obs: Any) -> NDArray[Any]:
    """Observations of all envs, `[N, size]`; the leaves of a Dict one after the other."""
    parts = list(obs.values()) if isinstance(obs, dict) else [obs]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def part_of(obs: Any, env: int) -> Any:
    """The observation of one env."""
    return {key: part[env] for key, part in obs.items()} if isinstance(obs, dict) else obs[env]


def random_actions(env: gym.vector.VectorEnv) -> Actions:
    """Uniform over the action space, whatever is seen."""
    space = env.single_action_space
    if isinstance(space, gym.spaces.Box):
        low, high = space.low, space.high
        return lambda obs, random: random.uniform(low, high, (env.num_envs, *space.shape)).astype(np.float32)
    first, count = getattr(space, "start", 0), space.nvec if isinstance(space, gym.spaces.MultiDiscrete) else space.n
    if isinstance(space, gym.spaces.MultiBinary):
        count = 2
    return lambda obs, random: random.integers(first, first + count, (env.num_envs, *space.shape))


def policy_actions(env: gym.vector.VectorEnv) -> Actions:
    """A fixed linear policy of the observation, squashed: smooth and far from uniform."""
    space = env.single_action_space
    size = gym.spaces.flatdim(env.single_observation_space)
    outputs = space.shape[0] if isinstance(space, gym.spaces.Box) else gym.spaces.flatdim(space)
    weights = np.random.default_rng(5).normal(size=(size, outputs)) / np.sqrt(size)
    if isinstance(space, gym.spaces.Box):
        middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
        return lambda obs, random: (middle + half * np.tanh(flat(obs) @ weights)).astype(np.float32)
    if isinstance(space, gym.spaces.MultiBinary):
        return lambda obs, random: (flat(obs) @ weights > 0).astype(np.int64)
    if isinstance(space, gym.spaces.MultiDiscrete):
        ends = np.cumsum(space.nvec)[:-1]
        return lambda obs, random: (
            space.start + np.stack([scores.argmax(1) for scores in np.split(flat(obs) @ weights, ends, axis=1)], axis=1)
        )
    return lambda obs, random: space.start + (flat(obs) @ weights).argmax(1)


def compare(
    env_id: str,
    steps: int,
    actions: Callable[[gym.vector.VectorEnv], Actions] = random_actions,
    num_envs: int = 4,
    tolerance: float = 0.0,
    **kwargs: Any,
) -> int:
    """Step both until `steps` env steps are compared, bit for bit unless a tolerance is given; how many resets."""
    ours = native.make(env_id, num_envs, **kwargs)
    theirs = [gym.make(env_id, disable_env_checker=True, **kwargs) for _ in range(num_envs)]
    obs, info = ours.reset(seed=31)
    for env, one in enumerate(theirs):
        expected, their_info = one.reset(seed=31 + env)
        same_sight(obs, info, env, expected, their_info, tolerance, "the beginning")
    choose, random, resets = actions(ours), np.random.default_rng(7), 0
    for step in range(-(-steps // num_envs)):
        chosen = choose(obs, random)
        obs, reward, terminated, truncated, info = ours.step(chosen)
        for env, one in enumerate(theirs):
            place = f"step {step} of env {env}"
            expected, expected_reward, *ends, their_info = one.step(chosen[env])
            assert [bool(end) for end in ends] == [terminated[env], truncated[env]], f"flags at {place}"
            equal(reward[env], expected_reward, tolerance, f"reward at {place}")
            if any(ends):
                equal(part_of(info["final_obs"], env), expected, tolerance, f"final observation at {place}")
                (expected, their_info), resets = one.reset(), resets + 1
            same_sight(obs, info, env, expected, their_info, tolerance, place)
    ours.close()
    return resets


def same_sight(obs: Any, info: Any, env: int, their_obs: Any, their_info: Any, tolerance: float, place: str) -> None:
    """The same observation, and the same mask or none."""
    equal(part_of(obs, env), their_obs, tolerance, f"observation at {place}")
    assert ("action_mask" in info) == ("action_mask" in their_info), f"action mask at {place}"
    if "action_mask" in info:
        equal(info["action_mask"][env], their_info["action_mask"], 0.0, f"action mask at {place}")


def equal(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """To the last bit, or within a relative tolerance."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), what
        for key, part in theirs.items():
            equal(ours[key], part, tolerance, f"{key} of {what}")
        return
    one, other = np.asarray(ours), np.asarray(theirs)
    assert one.shape == other.shape, what
    if tolerance == 0.0:
        assert one.tobytes() == other.tobytes() or np.array_equal(one, other), f"{what}: {one} is not {other}"
    else:
        scale = np.maximum(1.0, np.abs(other))
        assert (np.abs(one - other) <= tolerance * scale).all(), f"{what}: {one} is not {other}"
