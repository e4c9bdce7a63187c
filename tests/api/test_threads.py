"""How many torch threads learn, and that weights do not depend on it."""

import torch

from surefoot.compose import Specs, build_env, build_policy, fitting_threads
from surefoot.core.cores import available_cores
from surefoot.core.layers import build_config


def test_threads_by_how_much_is_computed_at_a_time():
    small = build_config({"env": {"id": "CartPole-v1"}, "ppo": {"batch_size": 64}})
    env = build_env(small)
    policy = build_policy(small, Specs(env.obs_spec, env.action_spec))
    large = build_config({"rollout": {"num_envs": 64}, "ppo": {"batch_size": 4096}})
    pieces = build_config({"rollout": {"num_envs": 64}, "ppo": {"batch_size": 4096, "micro_batch_size": 64}})
    assert fitting_threads(policy, small.ppo) == fitting_threads(policy, pieces.ppo) == 1
    assert fitting_threads(policy, large.ppo) == available_cores()


def test_first_weights_are_the_same_whatever_torch_is_set_to():
    config = build_config({"env": {"id": "Ant-v5"}, "policy": {"hidden": [256, 256]}})
    env = build_env(config)
    specs = Specs(env.obs_spec, env.action_spec)
    before = torch.get_num_threads()
    try:
        weights = []
        for threads in (1, 4):
            torch.set_num_threads(threads)
            weights.append(build_policy(config, specs).state_dict())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, weights[1][name]) for name, one in weights[0].items())
