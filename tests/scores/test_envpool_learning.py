"""An EnvPool task, learned although every episode is followed by a step that is none."""

import pytest

from surefoot.compose import Specs, build_policy, build_trainer
from surefoot.envs.adapters.envpool import EnvPoolEnvs
from surefoot.evaluation.evaluate import evaluate
from surefoot.settings.layers import build_config


@pytest.mark.parametrize("seed", [0, 1])
def test_cartpole(seed: int) -> None:
    """Random play lasts 22 steps. Of four seeds tried, three reached 500 and the worst 300."""
    config = build_config(
        {
            "env": {"id": "envpool:CartPole-v1"},
            "rollout": {"num_envs": 16, "num_steps": 64},
            "ppo": {"batch_size": 256, "epochs": 10, "gamma": 0.98, "gae_lambda": 0.8},
            "optimizer": {"lr": 2e-3, "lr_schedule": "linear"},
            "train": {"steps": 40_000, "seed": seed, "threads": 1},
        }
    )
    env = EnvPoolEnvs("CartPole-v1", config.env, config.rollout.num_envs, seed)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    build_trainer(config, env, policy).train()
    env.close()
    judge = EnvPoolEnvs("CartPole-v1", config.env, 10, seed=7)
    assert evaluate(policy, judge, 20, seed=7).mean_reward >= 195
    judge.close()
