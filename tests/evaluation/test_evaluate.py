"""Evaluation counts whole episodes, fairly, from fixed seeds, and changes nothing."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import torch

from surefoot.api import PPO
from surefoot.data.records import Obs, State
from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines.processes import ProcessEngine
from surefoot.errors import EnvError
from surefoot.evaluation import evaluate as module
from surefoot.evaluation.evaluate import evaluate
from surefoot.evaluation.evaluation import Evaluation
from surefoot.machine.torch_defaults import torch_threads
from surefoot.policies.policy import PolicyOutput
from surefoot.settings.config import RolloutConfig
from tests.envs.measured import MeasuredEnv, MeasuredTeam
from tests.envs.tasks import ENDLESS, CounterEnv, MaskMethodEnv, counters, factories
from tests.envs.teams import TEAM, teams
from tests.envs.unruly import UnrulyEnv
from tests.rollout.known_policies import CountingPolicy, KnownPolicy
from tests.training.states import assert_same


def rows_of(*lengths: object) -> GymnasiumEnvs:
    """Counters, each with episodes of its own length."""
    makers = [lambda i=i, n=n: CounterEnv(index=i, lengths=[n]) for i, n in enumerate(lengths)]
    return GymnasiumEnvs(makers, seed=3)


def test_each_row_plays_its_share():
    """Counting the first ten to end would take ten of row 0 and report a length of 1."""
    env = rows_of(1, 2, 3, 40)
    result = evaluate(KnownPolicy(env.action_spec), env, episodes=10, seed=0)
    assert result.lengths == (1, 1, 1, 2, 2, 2, 3, 3, 40, 40)


def test_fewer_episodes_than_rows():
    env = rows_of(5, 1, 1)
    assert evaluate(KnownPolicy(env.action_spec), env, episodes=2, seed=0).lengths == (5, 1)


def test_rewards_are_those_of_the_whole_episode():
    """The reward of a step is the code of the place it began at: env 1, episode 2, step 3 pays 10203."""
    env = counters(2, lengths=[3, 2])
    result = evaluate(KnownPolicy(env.action_spec), env, episodes=4, seed=0)
    assert result.rewards == (0 + 1 + 2, 100 + 101, 10_000 + 10_001 + 10_002, 10_100 + 10_101)
    assert result.lengths == (3, 2, 3, 2)
    assert result.mean_reward == np.mean(result.rewards)
    assert result.std_reward == pytest.approx(np.std(result.rewards))
    assert result.mean_ep_length == 2.5


def test_a_memory_starts_anew_with_each_episode():
    """The policy's choice is how many steps of the episode it has seen: the envs must receive 1, 2, 3, 1, 2, 3."""

    class Remembering(CountingPolicy):
        def forward(self, obs: Obs, state: State, episode_start, action_mask=None) -> PolicyOutput:
            counted = super().forward(obs, state, episode_start, action_mask)
            output = KnownPolicy(env.action_spec, choose=lambda _: counted.value.long()).forward(obs, (), episode_start)
            return PolicyOutput(output.distribution, counted.prediction, counted.value, counted.state)

    made = [CounterEnv(index=index, lengths=[3]) for index in range(2)]
    env = GymnasiumEnvs([lambda one=one: one for one in made], seed=3)
    evaluate(Remembering(env.action_spec), env, episodes=4, seed=0)
    assert [int(action) for action in made[0].received] == [1, 2, 3, 1, 2, 3]


def test_a_policy_may_remember_the_observation_itself():
    class Stacking(KnownPolicy):
        """Acts on the step that the last observation showed."""

        def forward(self, obs: Obs, state: State, episode_start, action_mask=None) -> PolicyOutput:
            output = KnownPolicy(env.action_spec, choose=lambda _: state[0][:, 2].long()).forward(
                obs, (), episode_start
            )
            return PolicyOutput(output.distribution, output.prediction, output.value, (obs,))

        def initial_state(self, num_rows: int) -> State:
            return (torch.zeros(num_rows, 5),)

    made = CounterEnv(lengths=[4])
    env = GymnasiumEnvs([lambda: made], seed=3)
    evaluate(Stacking(env.action_spec), env, episodes=1, seed=0)
    assert [int(action) for action in made.received] == [0, 0, 1, 2]


def test_what_a_policy_sees_can_be_perturbed():
    """The policy acts on the shown step; the perturbation shifts it by the number of steps that it has seen."""
    seen = []

    def perturb(obs: Obs, state: State, start: torch.Tensor, mask: torch.Tensor | None) -> Obs:
        seen.append((state[0].tolist(), start.tolist(), mask))
        return obs + state[0].unsqueeze(-1)

    class Following(CountingPolicy):
        def forward(self, obs: Obs, state: State, episode_start, action_mask=None) -> PolicyOutput:
            counted = super().forward(obs, state, episode_start, action_mask)
            output = KnownPolicy(env.action_spec, choose=lambda seen: seen[:, 2].long()).forward(obs, (), episode_start)
            return PolicyOutput(output.distribution, counted.prediction, counted.value, counted.state)

    made = CounterEnv(lengths=[2])
    env = GymnasiumEnvs([lambda: made], seed=3)
    evaluate(Following(env.action_spec), env, episodes=2, seed=0, perturb=perturb)
    assert seen == [([0], [True], None), ([1], [False], None), ([2], [True], None), ([1], [False], None)]
    assert [int(action) for action in made.received] == [0 + 0, 1 + 1, 0 + 2, 1 + 1]


def test_one_thread_computes_the_policy():
    """Two threads took minutes instead of seconds where other processes kept the cores busy."""
    seen = []

    def perturb(obs: Obs, state: State, start: torch.Tensor, mask: torch.Tensor | None) -> Obs:
        seen.append(torch.get_num_threads())
        return obs

    env = rows_of(2)
    with torch_threads(2):
        evaluate(KnownPolicy(env.action_spec), env, episodes=1, seed=0, perturb=perturb)
        assert torch.get_num_threads() == 2
    assert seen == [1, 1]


def test_masks_are_respected():
    env = counters(2, MaskMethodEnv, lengths=[5])  # refuses what its mask forbids
    policy = KnownPolicy(env.action_spec, choose=None)
    for deterministic in (True, False):
        assert evaluate(policy, env, 4, seed=1, deterministic=deterministic).lengths == (5, 5, 5, 5)


def test_an_env_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 200)
    env = rows_of(ENDLESS)
    with pytest.raises(EnvError, match=r"no episode ended within 200 steps; set env\.max_episode_steps"):
        evaluate(KnownPolicy(env.action_spec), env, episodes=1, seed=0)


def test_a_row_that_never_ends_is_noticed_beside_rows_that_do(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 200)
    env = rows_of(3, ENDLESS)
    with pytest.raises(EnvError, match="no episode ended within 200 steps"):
        evaluate(KnownPolicy(env.action_spec), env, episodes=2, seed=0)


def test_long_episodes_are_not_taken_for_endless_ones(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 200)
    env = rows_of(3, 200)
    assert evaluate(KnownPolicy(env.action_spec), env, episodes=4, seed=0).lengths == (3, 3, 200, 200)


@pytest.fixture(scope="module")
def agent():
    agent = PPO("Pendulum-v1", num_envs=2, num_steps=32, batch_size=32, epochs=1, max_episode_steps=25, eval_episodes=0)
    agent.learn(64)
    yield agent
    agent.close()


def test_fixed_seeds_give_equal_results(agent):
    first = agent.evaluate(6, seed=1)
    assert agent.evaluate(6, seed=1) == first
    assert agent.evaluate(6, seed=2) != first
    sampled = agent.evaluate(6, seed=1, deterministic=False)
    assert agent.evaluate(6, seed=1, deterministic=False) == sampled
    assert sampled != first


def test_a_rows_episodes_do_not_depend_on_how_many_there_are(agent):
    """S13: row i is seeded by (seed, i) alone."""
    assert agent.evaluate(4, seed=1).rewards == agent.evaluate(8, seed=1).rewards[:4]


def test_evaluation_does_not_touch_torchs_generator(agent):
    before = torch.random.get_rng_state()
    agent.evaluate(2, deterministic=False)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_statistics_and_training_are_as_if_never_evaluated():
    settings = {
        "num_envs": 2,
        "num_steps": 32,
        "batch_size": 32,
        "epochs": 1,
        "eval_episodes": 0,
        "max_episode_steps": 25,
    }
    normalize = {"obs": True, "reward": True, "returns": True}
    watched, left_alone = (PPO("Pendulum-v1", **settings, normalize=normalize).learn(64) for _ in range(2))
    before = {name: value.clone() for name, value in watched.policy.state_dict().items()}
    for deterministic in (True, False):
        watched.evaluate(3, deterministic=deterministic)
    assert_same(dict(watched.policy.state_dict()), before)
    for one in (watched, left_alone):
        one.learn(64)
    assert_same(dict(watched.policy.state_dict()), dict(left_alone.policy.state_dict()))


def interval_width(count: int) -> float:
    pattern = itertools.islice(itertools.cycle([0.0, 1.0, 4.0, 9.0]), count)
    low, high = Evaluation(tuple(pattern), (1,) * count).interval()
    assert low < 3.5 < high
    return high - low


def test_the_interval_holds_the_mean_and_shrinks_with_more_episodes():
    widths = [interval_width(count) for count in (8, 32, 128, 512)]
    assert sorted(widths, reverse=True) == widths
    # By the central limit theorem, half as wide for four times as many: sigma 3.5, so 2 * 1.96 * 3.5 / sqrt(n).
    sigma = np.std([0.0, 1.0, 4.0, 9.0])
    assert widths[-1] == pytest.approx(2 * 1.96 * sigma / np.sqrt(512), rel=0.1)


def test_the_interval_of_equal_rewards_is_a_point():
    assert Evaluation((5.0,) * 7, (1,) * 7).interval() == (5.0, 5.0)
    assert Evaluation((5.0,), (1,)).interval() == (5.0, 5.0)


def test_all_of_it_as_json():
    result = Evaluation((1.0, 3.0), (4, 6), {"won": (1.0, math.nan), "fell": (math.nan, math.nan)})
    low, high = result.interval()
    assert result.to_json(0.5) == {
        "mean_reward": 2.0,
        "std_reward": 1.0,
        "mean_ep_length": 5.0,
        "episodes": 2,
        "confidence_interval": [low, high],
        "risk": result.risk(0.5).to_json(),
        "are_identical": False,
        "rewards": [1.0, 3.0],
        "lengths": [4, 6],
        "metrics": {
            "won": {"mean": 1.0, "missing": 1, "values": [1.0, None]},
            "fell": {"mean": None, "missing": 2, "values": [None, None]},
        },
    }


def test_metrics_are_those_of_the_episodes_in_their_order():
    """Episodes of 3 and 2 steps, by row; `pace` counts odd steps, `effort` is the sum of step + wind + 10 slopes."""
    env = counters(2, MeasuredEnv, lengths=[3, 2])
    result = evaluate(KnownPolicy(env.action_spec), env, episodes=4, seed=0)
    assert result.lengths == (3, 2, 3, 2)
    assert result.metrics == {"score": (0, 1, 0, 1), "pace": (2, 1, 2, 1), "effort": (37.5, 24, 37.5, 24)}
    assert result.mean_metric("score") == 0.5


def test_metrics_of_agents_leave_out_who_is_not_there():
    env = PettingZooEnvs([partial(MeasuredTeam, index, TEAM) for index in range(2)], 3)
    result = evaluate(KnownPolicy(env.action_spec), env, episodes=12, seed=0)
    assert result.metrics["pay"] == result.rewards, "without a bonus, what is paid is the reward"
    assert sorted(set(result.metrics["place"])) == [0, 1, 2]
    assert evaluate(KnownPolicy(env.action_spec), teams(2), episodes=12, seed=0).metrics == {}


def test_a_vector_env_that_resets_in_the_next_step():
    """S4: the step that only resets counts neither as a step nor for its reward."""
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    agent = PPO(lambda: CounterEnv(lengths=[3]), num_envs=2, num_steps=8, batch_size=8)
    vector = SyncVectorEnv(factories(2, lengths=[3], endings=["terminated"]), autoreset_mode=AutoresetMode.NEXT_STEP)
    result = agent.evaluate(4, env=vector)
    assert result.lengths == (3, 3, 3, 3)
    assert result.rewards[0] == 0 + 1 + 2
    agent.close()
    vector.close()


def test_an_agent_that_never_joins_is_not_waited_for():
    env = teams(2, [{"ann": "aaaL", "bob": "...."}])
    evaluation = evaluate(KnownPolicy(env.action_spec), env, episodes=8, seed=0)
    assert evaluation.lengths == (3, 3, 3, 3), "two each of the two that play"


def test_an_episode_that_a_fault_cut_off_is_played_again(tmp_path):
    make = partial(UnrulyEnv, "step", "exit", 2, tmp_path / "done", lengths=(4,))
    with ProcessEngine(Blueprint([make], 0), RolloutConfig(workers=1)) as env:
        assert evaluate(KnownPolicy(env.action_spec), env, episodes=2, seed=0).lengths == (4, 4)
        assert env.restarts == 1


class SameEnv(CounterEnv):
    """Ignores its seed."""

    def __init__(self, pays: float = 1.0) -> None:
        super().__init__(index=0, lengths=[4])
        self.pays = pays

    def step(self, action):
        obs, _, *rest = super().step(action)
        return obs * 0, self.pays, *rest

    def reset(self, *, seed=None, options=None):
        obs, info = super().reset(seed=seed, options=options)
        return obs * 0, info


@pytest.mark.parametrize("episodes", [3, 10])
@pytest.mark.parametrize("rows", [1, 3])
def test_episodes_that_are_identical_are_told(episodes, rows):
    env = GymnasiumEnvs([SameEnv] * rows, seed=3)
    result = evaluate(KnownPolicy(env.action_spec), env, episodes, seed=0)
    assert result.are_identical
    assert f"all {episodes} episodes are identical, step by step: the env ignores its seed" in repr(result)
    assert result.to_json(0.5)["are_identical"]


def test_two_episodes_may_be_identical_by_chance():
    env = GymnasiumEnvs([SameEnv] * 2, seed=3)
    assert not evaluate(KnownPolicy(env.action_spec), env, 2, seed=0).are_identical


def test_equal_returns_are_not_identical_episodes():
    """A solved CartPole pays 500 in every episode, but each is another one."""
    same_return = GymnasiumEnvs(
        [lambda index=index: CounterEnv(index=index, lengths=[1]) for index in range(3)], seed=3
    )
    solved = PPO.load("zoo:CartPole-v1").evaluate(3)
    assert (set(solved.rewards), solved.are_identical, solved.note) == ({500.0}, False, None)
    assert not evaluate(KnownPolicy(same_return.action_spec), same_return, 3, seed=0).are_identical
    other_rewards = GymnasiumEnvs([partial(SameEnv, pays) for pays in (1.0, 1.0, 2.0)], seed=3)
    assert not evaluate(KnownPolicy(other_rewards.action_spec), other_rewards, 3, seed=0).are_identical
