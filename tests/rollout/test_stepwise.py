"""Rollouts of counters: what was stored where, S1 to S6 and S13."""

from itertools import pairwise

import torch
from gymnasium import spaces

from surefoot.data.records import Episode, Rollout
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import VecEnv
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.policy import Policy
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import EnvConfig, NormalizeConfig, PolicyConfig
from tests.envs.tasks import ENDLESS, CounterEnv, ReusingEnv, counters, factories
from tests.rollout.known_policies import CountingPolicy, KnownPolicy, code_value

T, F = True, False


def collector(
    env: VecEnv, num_steps: int, seed: int = 5, policy: Policy | None = None
) -> tuple[StepwiseCollector, Policy]:
    policy = policy or KnownPolicy(env.action_spec)
    return StepwiseCollector(env, policy, num_steps, seed), policy


def column(rollout: Rollout, name: str, row: int = 0) -> list:
    return getattr(rollout, name)[:, row].tolist()


def copied(rollout: Rollout) -> dict[str, torch.Tensor]:
    """A rollout's memory is reused by the next: keep this one."""
    return {name: value.clone() for name, value in vars(rollout).items() if isinstance(value, torch.Tensor)}


def actor_critic(env: VecEnv, seed: int = 0, **config: object) -> ActorCritic:
    torch.manual_seed(seed)
    return ActorCritic(env.obs_spec, env.action_spec, PolicyConfig(**config), NormalizeConfig())


# Episodes of 3, 1 and 4 steps that are terminated, truncated and both, then again from the first.
EPISODE = [0, 0, 0, 1, 2, 2, 2, 2, 3, 3]
STEP = [0, 1, 2, 0, 0, 1, 2, 3, 0, 1]
TERMINATED = [F, F, T, F, F, F, F, T, F, F]
TRUNCATED = [F, F, F, T, F, F, F, T, F, F]
START = [T, F, F, T, T, F, F, F, T, F]


def test_every_field_is_of_its_own_step():
    collect, policy = collector(counters(3), num_steps=10)
    rollout = collect.collect(policy)
    for row in range(3):
        assert rollout.obs[:, row, 0].tolist() == [row] * 10
        assert rollout.obs[:, row, 1].tolist() == EPISODE
        assert rollout.obs[:, row, 2].tolist() == STEP
        codes = [10_000 * row + 100 * episode + step for episode, step in zip(EPISODE, STEP, strict=True)]
        assert column(rollout, "reward", row) == codes
        assert column(rollout, "value", row) == [code + 0.5 for code in codes]
        assert column(rollout, "action", row) == [(e + s) % 4 for e, s in zip(EPISODE, STEP, strict=True)]
        assert column(rollout, "log_prob", row) == [0.0] * 10
        assert column(rollout, "terminated", row) == TERMINATED
        assert column(rollout, "truncated", row) == TRUNCATED
        assert column(rollout, "episode_start", row) == START
        # The observation after the last step is step 2 of episode 3.
        assert rollout.last_value[row] == 10_000 * row + 302.5
    assert rollout.valid.all()
    assert rollout.num_steps == 30
    # What an action led to is shown one step later.
    acted_on = ~rollout.episode_start[1:]
    assert torch.equal(rollout.obs[1:, :, 3][acted_on], rollout.action[:-1][acted_on].float())


def test_the_final_observation_is_valued_where_an_episode_was_only_truncated():
    collect, policy = collector(counters(3), num_steps=10)
    rollout = collect.collect(policy)
    expected = torch.zeros(10, 3)
    # Only episode 1 is truncated without being terminated: after its one step it is at step 1.
    expected[3] = torch.tensor([101.5, 10_101.5, 20_101.5])
    assert torch.equal(rollout.final_value, expected)


def test_truncation_at_the_last_step_of_a_rollout():
    collect, policy = collector(counters(2), num_steps=4)
    rollout = collect.collect(policy)
    assert column(rollout, "truncated") == [F, F, F, T]
    assert rollout.final_value[3].tolist() == [101.5, 10_101.5]
    assert rollout.last_value.tolist() == [200.5, 10_200.5], "the last value is of the next episode's first observation"
    following = collect.collect(policy)
    assert column(following, "episode_start") == [T, F, F, F]
    assert following.obs[0, :, 1].tolist() == [2, 2]
    assert column(following, "terminated") == [F, F, F, T]
    assert following.final_value.eq(0).all()


def test_rollouts_join_without_a_seam():
    """Ten steps at once, or in five rollouts of two."""
    whole_collector, policy = collector(counters(3), num_steps=10)
    whole = whole_collector.collect(policy)
    parts_collector, policy = collector(counters(3), num_steps=2)
    parts = [copied(parts_collector.collect(policy)) for _ in range(5)]
    for name in (
        "obs",
        "action",
        "reward",
        "value",
        "terminated",
        "truncated",
        "final_value",
        "episode_start",
        "valid",
    ):
        assert torch.equal(getattr(whole, name), torch.cat([part[name] for part in parts])), name
    for part, following in pairwise(parts):
        assert torch.equal(part["last_value"], following["value"][0])
    assert torch.equal(parts[-1]["last_value"], whole.last_value)


def test_one_step_episodes_that_are_terminated():
    collect, policy = collector(counters(2, lengths=[1], endings=["terminated"]), num_steps=3)
    rollout = collect.collect(policy)
    assert rollout.terminated.all()
    assert rollout.episode_start.all()
    assert rollout.final_value.eq(0).all()
    assert rollout.obs[:, 1, 1].tolist() == [0, 1, 2]
    assert rollout.stats.recent == tuple(Episode(10_000.0 * row + 100 * t, 1) for t in range(3) for row in (0, 1))


def test_an_env_that_never_ends():
    collect, policy = collector(counters(2, lengths=[ENDLESS]), num_steps=3)
    for begin in (0, 3, 6):
        rollout = collect.collect(policy)
        assert rollout.obs[:, 0, 2].tolist() == [begin, begin + 1, begin + 2]
        assert rollout.episode_start[:, 0].tolist() == [begin == 0, F, F]
        assert rollout.last_value[0] == begin + 3.5
        assert rollout.stats.finished == rollout.stats.recent == ()


def test_an_env_that_reuses_its_observation_array_gives_the_same_rollout():
    rollouts = []
    for kind in (CounterEnv, ReusingEnv):
        collect, policy = collector(counters(3, kind), num_steps=10)
        rollouts.append(collect.collect(policy))
    for name, value in copied(rollouts[0]).items():
        assert torch.equal(value, getattr(rollouts[1], name)), name


def test_truncation_as_termination_leaves_nothing_to_bootstrap():
    env = GymnasiumEnvs(factories(2), seed=3, truncation_as_termination=True)
    collect, policy = collector(env, num_steps=10)
    rollout = collect.collect(policy)
    assert column(rollout, "terminated") == [a or b for a, b in zip(TERMINATED, TRUNCATED, strict=True)]
    assert not rollout.truncated.any()
    assert rollout.final_value.eq(0).all()
    assert column(rollout, "episode_start") == START


def test_memory_is_carried_to_the_final_observation_and_across_rollouts():
    env = counters(2, lengths=[3, 2], endings=["truncated", "terminated"])
    collect, policy = collector(env, num_steps=4, policy=CountingPolicy(env.action_spec))
    rollout = collect.collect(policy)
    assert rollout.state[0].tolist() == [[0, 0]]
    assert column(rollout, "value") == [1, 2, 3, 1]
    # The episode's fourth observation: three steps are remembered, and it makes four.
    assert column(rollout, "final_value") == [0, 0, 4, 0]
    assert rollout.last_value.tolist() == [2, 2]
    following = collect.collect(policy)
    assert following.state[0].tolist() == [[1, 1]], "the state before the first step, not after it"
    assert column(following, "value") == [2, 1, 2, 3]
    assert column(following, "final_value") == [0, 0, 0, 4]


def test_a_row_does_not_depend_on_how_many_rows_there_are():
    """Env seeds and policy noise are a function of the row, not of the number of rows (S13)."""
    few_collector, policy = collector(
        counters(2), num_steps=20, policy=KnownPolicy(counters(1).action_spec, choose=None)
    )
    few = few_collector.collect(policy)
    many_collector, policy = collector(
        counters(7), num_steps=20, policy=KnownPolicy(counters(1).action_spec, choose=None)
    )
    many = many_collector.collect(policy)
    assert len(few.action.unique()) == 4, "the noise must matter for this test to say anything"
    for name in ("obs", "action", "log_prob", "reward", "value", "final_value"):
        assert torch.equal(getattr(few, name), getattr(many, name)[:, :2]), name


def test_a_row_of_a_real_task_does_not_depend_on_how_many_rows_there_are():
    rollouts = []
    for rows in (2, 5):
        env = make_vec_env("Pendulum-v1", EnvConfig(max_episode_steps=15), rows, seed=11)
        collect, policy = collector(env, num_steps=40, policy=actor_critic(env))
        rollouts.append(copied(collect.collect(policy)))
    for name in ("obs", "action", "log_prob", "reward", "value", "final_value"):
        # Matrix products of another batch size may round differently in the last bit.
        torch.testing.assert_close(rollouts[0][name], rollouts[1][name][:, :2], rtol=1e-4, atol=1e-4)


def test_same_seed_same_rollouts_bit_for_bit():
    rollouts = []
    for seed in (8, 8, 9):
        env = make_vec_env("Pendulum-v1", EnvConfig(max_episode_steps=15), 3, seed=11)
        collect, policy = collector(env, num_steps=20, seed=seed, policy=actor_critic(env))
        rollouts.append([copied(collect.collect(policy)) for _ in range(2)])
    first, again, other = rollouts
    for part, part_again in zip(first, again, strict=True):
        for name, value in part.items():
            assert torch.equal(value, part_again[name]), name
    assert not torch.equal(first[0]["action"], other[0]["action"])
    assert not torch.equal(first[0]["action"], first[1]["action"]), "the second rollout draws new noise"


def test_observations_out_of_their_box_are_counted_once():
    class LeavingEnv(CounterEnv):
        """Says it stays below 2.5, but counts on."""

        def __init__(self, index: int) -> None:
            super().__init__(index, lengths=[ENDLESS])
            self.observation_space = spaces.Box(-10, 2.5, (5,))

    env = counters(1, LeavingEnv)
    policy = KnownPolicy(env.action_spec, choose=lambda obs: torch.zeros(len(obs), dtype=torch.long))
    collect, policy = collector(env, num_steps=3, policy=policy)
    counts = [collect.collect(policy).stats.obs_out_of_bounds for _ in range(3)]
    assert counts == [0, 3, 3], "steps 0 1 2, then 3 4 5, then 6 7 8"


def test_values_are_of_the_policy_that_collected():
    env = counters(2)
    collect, policy = collector(env, num_steps=10)
    rollout = collect.collect(policy)
    assert torch.equal(rollout.value, code_value(rollout.obs))
