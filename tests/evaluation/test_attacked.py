"""Evaluation under attack: the same episodes, worse results, and a memory that follows what was seen."""

import numpy as np
import pytest
import torch

from surefoot import PPO, Attack
from surefoot.data.records import Obs, State
from surefoot.errors import ConfigError, PolicyError
from surefoot.evaluation.evaluate import evaluate
from surefoot.policies.policy import PolicyOutput
from tests.envs.tasks import CounterEnv, counters
from tests.rollout.known_policies import KnownPolicy


@pytest.fixture(scope="module")
def agent():
    """Balances the pole for a while."""
    agent = PPO("CartPole-v1", seed=1, lr=0.003, max_episode_steps=100, eval_episodes=0, **{"train.threads": 1})
    yield agent.learn(10_000)
    agent.close()


def test_an_attack_lowers_the_return_of_a_trained_policy(agent):
    clean = agent.evaluate(4, seed=3)
    assert clean.mean_reward == 100
    before = {name: value.clone() for name, value in agent.policy.state_dict().items()}
    fgsm, pgd = (agent.evaluate(4, seed=3, attack=Attack(method, 0.3, steps=3)) for method in ("fgsm", "pgd"))
    assert fgsm.mean_reward < 60
    assert pgd.mean_reward < 60
    assert agent.evaluate(4, seed=3, attack=Attack("pgd", 0.3, steps=3)) == pgd
    assert agent.evaluate(4, seed=3, attack=Attack("pgd", 0.0, steps=1)) == clean, "same seeds, same episodes"
    assert all(torch.equal(value, before[name]) for name, value in agent.policy.state_dict().items())
    assert all(parameter.grad is None or not parameter.grad.any() for parameter in agent.policy.parameters())


def test_episodes_under_attack_do_not_depend_on_how_many_there_are(agent):
    attack = Attack("pgd", 0.2, steps=2)
    assert agent.evaluate(2, attack=attack).rewards == agent.evaluate(4, attack=attack).rewards[:2]


@pytest.mark.parametrize("deterministic", [True, False])
def test_an_attack_on_memory_masks_and_dicts(deterministic):
    settings = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "eval_episodes": 0, "memory": "lstm"}
    agent = PPO("Probe-v0", **settings, normalize={"obs": True}, **{"train.threads": 1}).learn(64)
    attacked = agent.evaluate(3, deterministic=deterministic, attack=Attack("pgd", 0.3, steps=2))
    assert len(attacked.rewards) == 3


def test_the_state_follows_the_perturbed_observations():
    """The policy remembers the sum of what it saw: without the perturbation 0 + 1 + 2, with it one more per step."""
    seen: list[float] = []

    class Summing(KnownPolicy):
        def forward(self, obs: Obs, state: State, episode_start, action_mask=None) -> PolicyOutput:
            output = super().forward(obs, (), episode_start, action_mask)
            total = torch.where(episode_start, 0.0, state[0]) + obs[:, 2]
            seen.append(float(total))
            return PolicyOutput(output.distribution, total, total, (total,))

        def initial_state(self, num_rows: int) -> State:
            return (torch.zeros(num_rows),)

    def one_more(obs: Obs, state: State, start, mask) -> Obs:
        given.append((state[0].item(), bool(start)))
        assert isinstance(obs, torch.Tensor)
        return obs + torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])

    given: list[tuple[float, bool]] = []
    env = counters(1, CounterEnv, lengths=[3])
    policy = Summing(env.action_spec)
    result = evaluate(policy, env, 1, seed=0, perturb=one_more)
    assert seen == [1, 3, 6]
    assert given == [(0, True), (1, False), (3, False)], "exactly what the policy is given next"
    assert result.rewards == (0 + 1 + 2,), "the env is not perturbed"


def test_what_is_not_an_attack_is_refused(agent):
    with pytest.raises(ConfigError, match=r"evaluate: attack: pass a surefoot\.Attack, not 'pgd'"):
        agent.evaluate(1, attack="pgd")


def test_a_policy_without_continuous_observations_is_refused():
    agent = PPO("CliffWalking-v1", num_envs=2, num_steps=16, batch_size=16, max_episode_steps=5)
    with pytest.raises(PolicyError, match="no continuous part to perturb"):
        agent.evaluate(1, attack=Attack("fgsm", 0.1))
    assert np.isfinite(agent.evaluate(1).mean_reward)
