"""Every native env against Gymnasium's own: the same numbers to the last bit, across resets."""

import pytest

from surefoot.envs import native
from surefoot.envs.tasks.registration import register_envs
from tests.parity.stepping import compare, policy_actions, random_actions


@pytest.mark.parametrize("actions", [random_actions, policy_actions])
@pytest.mark.parametrize("env_id", ["CartPole-v1", "HalfCheetah-v5"])
def test_a_native_env_gives_what_gymnasium_gives(env_id: str, actions) -> None:
    assert compare(env_id, 10_000, actions) > 0


def test_every_native_env_is_known_to_gymnasium() -> None:
    import gymnasium as gym

    register_envs()
    assert set(native.native_ids()) <= set(gym.registry)
