"""How many threads learn, and that weights do not depend on it."""

from typing import Any

import torch

from surefoot.compose import Specs, build_env, build_policy
from surefoot.core.config import Config
from surefoot.core.layers import build_config
from surefoot.learning.execution import execution_of, learning_threads
from surefoot.native.kernels import kernel_threads, readable_only
from surefoot.policies.policy import Policy


def made(batch_size: int, policy: dict[str, Any], **ppo: Any) -> tuple[Policy, Config]:
    rows = {"num_envs": 64, "num_steps": 256}
    parts = {"policy": policy, "ppo": {"batch_size": batch_size, **ppo}, "rollout": rows}
    config = build_config({"env": {"id": "CartPole-v1"}}, parts)
    env = build_env(config)
    return build_policy(config, Specs(env.obs_spec, env.action_spec)), config


def threads_of(*arguments: Any, **ppo: Any) -> int:
    policy, config = made(*arguments, **ppo)
    return learning_threads(policy, config.ppo, 8)


def test_torch_has_threads_where_it_has_work() -> None:
    large = {"hidden": [512, 512]}
    assert threads_of(64, large) == 8  # few samples of large layers are torch's
    assert threads_of(4096, large) == 1  # these are the core's
    assert threads_of(4096, large | {"activation": "gelu"}) == 8  # this is unknown to it
    assert threads_of(4096, large, micro_batch_size=64) == 8
    assert threads_of(64, {"hidden": [64, 64], "activation": "gelu"}) == 1  # too little
    assert threads_of(4096, {"memory": {"kind": "gru", "hidden_size": 256}}) == 8
    with readable_only():
        assert threads_of(4096, large) == 8


def test_what_is_asked_for_is_set() -> None:
    before = torch.get_num_threads(), kernel_threads().count
    policy, config = made(64, {"hidden": [512, 512]})
    asked = config.model_copy(update={"train": config.train.model_copy(update={"threads": 3})})
    for keeps_cores_busy, collecting in ((True, 1), (False, 3)):
        execution = execution_of(asked, policy, keeps_cores_busy)
        with execution.learning():
            assert torch.get_num_threads() == kernel_threads().count == 3
        with execution.collecting():
            assert torch.get_num_threads() == collecting
        assert (torch.get_num_threads(), kernel_threads().count) == before


def test_first_weights_are_the_same_whatever_torch_is_set_to() -> None:
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
