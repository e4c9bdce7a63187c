"""S4 and S5: whatever the autoreset mode, the same valid transitions, values and advantages as the local engine."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from torch import Tensor

from surefoot.data.records import Episode, Rollout
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.gymnasium_vector import GymnasiumVectorEnv
from surefoot.envs.make import gymnasium_factory
from surefoot.envs.protocol import VecEnv
from surefoot.learning.scorer import Scorer
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import flatten
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig, NormalizeConfig, PolicyConfig, PPOConfig
from tests.envs.tasks import counters, factories
from tests.rollout.known_policies import CountingPolicy, KnownPolicy

MODES = list(AutoresetMode)
GAMMA, LAMBDA = 0.9, 0.8


def advantages(rollout: Rollout) -> Tensor:
    config = PPOConfig(gamma=GAMMA, gae_lambda=LAMBDA, advantage_norm="none")
    return Scorer(config, None).score(rollout, ScalarCritic(1, PolicyConfig(), NormalizeConfig())).advantage


def columns(rollout: Rollout) -> dict[str, Tensor]:
    names = ("obs", "action", "log_prob", "value", "reward", "terminated", "truncated", "final_value", "episode_start")
    return {name: getattr(rollout, name) for name in names} | {"advantage": advantages(rollout)}


def row_of(rollout: Rollout, row: int) -> dict[str, Tensor]:
    """The valid transitions of a row, up to the end of its last finished episode: there advantages are complete.

    A row's first step may come after a reset step, whose start it then is.
    """
    valid = rollout.valid[:, row]
    picked = {name: column[:, row][valid] for name, column in columns(rollout).items()}
    last_end = int((picked["terminated"] | picked["truncated"]).nonzero().max())
    return {name: column[: last_end + 1] for name, column in picked.items()}


def assert_same(rollout: Rollout, expected: Rollout, at_least: int) -> None:
    for row in range(rollout.valid.shape[1]):
        ours, theirs = row_of(rollout, row), row_of(expected, row)
        shared = min(len(ours["reward"]), len(theirs["reward"]))
        assert shared >= at_least
        for name, column in ours.items():
            torch.testing.assert_close(column[:shared], theirs[name][:shared], rtol=1e-6, atol=1e-5, msg=name)


def collected(env: VecEnv, policy: Policy, num_steps: int) -> Rollout:
    return StepwiseCollector(env, policy, num_steps, seed=5).collect(policy)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_valid_transitions_values_and_advantages(mode):
    """Episodes of 3, 1 and 4 steps, terminated, truncated and both; actions are a function of the observation."""
    env = GymnasiumVectorEnv(SyncVectorEnv(factories(3), autoreset_mode=mode), seed=3)
    policy = KnownPolicy(env.action_spec)
    assert_same(collected(env, policy, 24), collected(counters(3), policy, 24), at_least=16)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_on_a_real_task(mode):
    """CartPole, pushed by the sign of the pole's angle, with a limit that some episodes reach and others do not."""
    make = gymnasium_factory("CartPole-v1", EnvConfig(max_episode_steps=45))
    vector = GymnasiumVectorEnv(SyncVectorEnv([make] * 3, autoreset_mode=mode), seed=3)
    policy = KnownPolicy(
        vector.action_spec, value=lambda obs: obs[..., 0] + 3, choose=lambda obs: (obs[..., 2] > 0).long()
    )
    local = collected(GymnasiumEnvs([make] * 3, seed=3), policy, 150)
    assert local.terminated.any()
    assert local.truncated.any()
    assert_same(collected(vector, policy, 150), local, at_least=80)


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_without_reset_rows_even_noise_is_the_same(mode):
    """A sampling policy: both engines reset in the same step, so the noise of every step is the same too."""
    make = gymnasium_factory("Pendulum-v1", EnvConfig(max_episode_steps=9))
    rollouts = []
    for env in (
        GymnasiumVectorEnv(SyncVectorEnv([make] * 3, autoreset_mode=mode), seed=3),
        GymnasiumEnvs([make] * 3, seed=3),
    ):
        torch.manual_seed(0)
        policy = ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(hidden=(16,)), NormalizeConfig())
        rollouts.append(collected(env, policy, 30))
    for name, column in columns(rollouts[0]).items():
        assert torch.equal(column, columns(rollouts[1])[name]), name
    assert rollouts[0].final_value.count_nonzero() == 9


def test_in_subprocesses():
    env = GymnasiumVectorEnv(AsyncVectorEnv(factories(2), autoreset_mode=AutoresetMode.NEXT_STEP), seed=3)
    policy = KnownPolicy(env.action_spec)
    try:
        assert_same(collected(env, policy, 24), collected(counters(2), policy, 24), at_least=16)
    finally:
        env.close()


def test_reset_rows_are_invalid_across_rollouts():
    """Two steps a rollout, episodes of two steps: every second rollout begins with a reset."""
    vector = SyncVectorEnv(factories(2, lengths=[2], endings=["truncated"]), autoreset_mode=AutoresetMode.NEXT_STEP)
    env = GymnasiumVectorEnv(vector, seed=3)
    policy = KnownPolicy(env.action_spec)
    collector = StepwiseCollector(env, policy, 2, seed=5)
    first = collector.collect(policy)
    assert first.valid.all()
    assert first.truncated[1].all()
    assert first.final_value[1].tolist() == [2.5, 10_002.5]
    assert first.num_steps == 4
    second = collector.collect(policy)
    assert second.valid.tolist() == [[False, False], [True, True]]
    assert second.episode_start.tolist() == [[True, True], [True, True]], "the step after a reset starts the episode"
    assert second.obs[:, 0, 1:3].tolist() == [[0, 2], [1, 0]], "the reset step is taken at the final observation"
    assert second.reward[0].eq(0).all()
    assert second.num_steps == 2
    third = collector.collect(policy)
    assert third.valid.tolist() == [[True, True], [False, False]]
    assert third.truncated[0].all()
    assert third.num_steps == 2
    assert [episode.length for episode in third.stats.recent] == [2, 2, 2, 2]


def test_memory_starts_at_the_step_after_the_reset():
    vector = SyncVectorEnv(factories(1, lengths=[2], endings=["truncated"]), autoreset_mode=AutoresetMode.NEXT_STEP)
    env = GymnasiumVectorEnv(vector, seed=3)
    policy = CountingPolicy(env.action_spec)
    rollout = collected(env, policy, 6)
    assert rollout.valid[:, 0].tolist() == [True, True, False, True, True, False]
    assert rollout.value[:, 0][rollout.valid[:, 0]].tolist() == [1, 2, 1, 2]
    assert rollout.final_value[:, 0].tolist() == [0, 3, 0, 0, 3, 0]


@pytest.mark.parametrize("mode", MODES)
def test_statistics_count_what_happened(mode):
    env = GymnasiumVectorEnv(SyncVectorEnv(factories(2, lengths=[3]), autoreset_mode=mode), seed=3)
    rollout = collected(env, KnownPolicy(env.action_spec), 8)
    assert rollout.num_steps == int(rollout.valid.sum()) == (12 if mode is AutoresetMode.NEXT_STEP else 16)
    # Rewards are codes: 0 + 1 + 2 in env 0's first episode, 100 + 101 + 102 in its second.
    assert rollout.stats.finished == (Episode(3, 3), Episode(30_003, 3), Episode(303, 3), Episode(30_303, 3))


def test_only_valid_samples_are_learned_from():
    vector = SyncVectorEnv(factories(3), autoreset_mode=AutoresetMode.NEXT_STEP)
    rollout = collected(GymnasiumVectorEnv(vector, seed=3), KnownPolicy(counters(1).action_spec), 24)
    critic = ScalarCritic(1, PolicyConfig(), NormalizeConfig())
    targets = Scorer(PPOConfig(gamma=GAMMA, gae_lambda=LAMBDA), None).score(rollout, critic)
    batch = flatten(rollout, targets)
    assert len(batch) == rollout.num_steps < 3 * 24
    # Rewards of reset steps are 0; values are codes and a half, so each sample is one place, seen once.
    assert len(set(batch.value.tolist())) == len(batch)
    assert abs(float(batch.advantage.mean())) < 1e-5
    assert float(batch.advantage.std()) == pytest.approx(1, abs=1e-5)


class ScriptEnv(gym.Env[np.ndarray, int]):
    """Plays written rewards and observations; an episode is truncated after its last reward."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,))
    action_space = spaces.Discrete(4)

    def __init__(self, *episodes: tuple[list[float], list[float]]) -> None:
        self._episodes, self._episode, self._step = episodes, -1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._episode, self._step = 0 if seed is not None else self._episode + 1, 0
        return self._observe(), {}

    def step(self, action: int) -> Any:
        rewards, _ = self._episodes[self._episode]
        self._step += 1
        return self._observe(), rewards[self._step - 1], False, self._step == len(rewards), {}

    def _observe(self) -> np.ndarray:
        return np.array([self._episodes[self._episode][1][self._step]], dtype=np.float32)


def scripted(*episodes: tuple[list[float], list[float]]) -> tuple[GymnasiumVectorEnv, Policy]:
    """A NEXT_STEP vector env of one script, and a policy whose value is the observation."""
    vector = SyncVectorEnv([lambda: ScriptEnv(*episodes)], autoreset_mode=AutoresetMode.NEXT_STEP)
    env = GymnasiumVectorEnv(vector, seed=0)
    policy = KnownPolicy(env.action_spec, lambda obs: obs[..., 0], choose=lambda obs: torch.zeros(len(obs)).long())
    return env, policy


def test_golden_reset_step_in_the_middle():
    """golden_cases.json, autoreset: rewards 1 2 | 3 4, values 0.5 1 (10 at the end) | 1.5 2 (2.5 next).

    d = 1 + 0.9 * 1 - 0.5 = 1.4 and 2 + 0.9 * 10 - 1 = 10; A_0 = 1.4 + 0.72 * 10 = 8.6.
    d = 3 + 0.9 * 2 - 1.5 = 3.3 and 4 + 0.9 * 2.5 - 2 = 4.25; A_3 = 3.3 + 0.72 * 4.25 = 6.36.
    """
    env, policy = scripted(([1.0, 2.0], [0.5, 1.0, 10.0]), ([3.0, 4.0, 0.0], [1.5, 2.0, 2.5, 0.0]))
    rollout = collected(env, policy, 5)
    assert rollout.valid[:, 0].tolist() == [True, True, False, True, True]
    assert rollout.value[:, 0].tolist() == [0.5, 1.0, 10.0, 1.5, 2.0]
    assert rollout.last_value.tolist() == [2.5]
    valid_advantages = advantages(rollout)[rollout.valid]
    torch.testing.assert_close(valid_advantages, torch.tensor([8.6, 10.0, 6.36, 4.25]), rtol=0, atol=1e-6)
    assert rollout.num_steps == 4


def test_golden_reset_step_at_the_start_of_a_rollout():
    """golden_cases.json, autoreset: the episode ended at the last step of the rollout before."""
    env, policy = scripted(([7.0, 7.0, 7.0], [0.0, 0.0, 0.0, 10.0]), ([3.0, 4.0, 0.0], [1.5, 2.0, 2.5, 0.0]))
    collector = StepwiseCollector(env, policy, 3, seed=0)
    assert collector.collect(policy).truncated[2].all()
    rollout = collector.collect(policy)
    assert rollout.valid[:, 0].tolist() == [False, True, True]
    assert rollout.value[:, 0].tolist() == [10.0, 1.5, 2.0]
    torch.testing.assert_close(advantages(rollout)[rollout.valid], torch.tensor([6.36, 4.25]), rtol=0, atol=1e-6)
