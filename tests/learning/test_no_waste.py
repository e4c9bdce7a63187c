"""What the readable path does not waste: waiting for the device, separate optimizer kernels, forward passes, copies."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from surefoot import PPO
from surefoot.data.records import Batch, Knobs
from surefoot.envs.make import make_vec_env
from surefoot.rollout.minibatches import flatten, minibatches
from surefoot.settings.config import EnvConfig, RolloutConfig


class Operations(TorchDispatchMode):
    """Counts the tensor operations below it."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count[str(function)] += 1
        return function(*args, **(kwargs or {}))


def agent(env: Any = "Pendulum-v1", **settings: Any) -> PPO:
    return PPO(env, engine="local", num_envs=4, num_steps=32, batch_size=32, eval_episodes=0, **settings)


def one_minibatch(owner: PPO) -> Batch:
    trainer = owner._started()
    rollout = trainer.collector.collect(trainer.policy)
    return next(minibatches(flatten(rollout, trainer.scorer.score(rollout, trainer.policy.critic)), 32))


@pytest.mark.parametrize("advantage_norm", ["rollout", "minibatch", "none"])
@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1"])
def test_a_gradient_step_never_waits_for_the_device(env: str, advantage_norm: str) -> None:
    owner = agent(env, advantage_norm=advantage_norm, clip_value=0.2, entropy_coef=0.01, returns=True)
    minibatch = one_minibatch(owner)
    with Operations() as operations:
        owner._started().learner._step(minibatch, Knobs(lr=1e-3, clip=0.2, entropy_coef=0.01, value_coef=0.5))
    assert operations.count["aten._local_scalar_dense.default"] == 0
    assert operations.count["aten.nonzero.default"] == 0
    assert sum(operations.count.values()) > 50


def test_the_optimizer_is_one_fused_kernel() -> None:
    owner = agent()
    minibatch = one_minibatch(owner)
    with Operations() as operations:
        owner._started().learner._step(minibatch, Knobs(lr=1e-3, clip=0.2, entropy_coef=0.0, value_coef=0.5))
    assert operations.count["aten._fused_adam_.default"] == 1


def test_open_ends_are_valued_in_one_batch() -> None:
    """32 steps of 4 rows with a time limit of 5 leave two dozen final observations: one forward pass for all."""
    owner = agent(max_episode_steps=5)
    trainer = owner._started()
    batches: list[int] = []
    trainer.policy.register_forward_pre_hook(lambda module, inputs: batches.append(len(inputs[0])))
    rollout = trainer.collector.collect(trainer.policy)
    ends = int(rollout.truncated.sum())
    assert ends >= 20
    assert sorted(batches) == [4] * 33 + [ends]


def test_an_env_writes_into_the_rollout_itself() -> None:
    owner = agent()
    trainer = owner._started()
    rollout = trainer.collector.collect(trainer.policy)
    assert isinstance(rollout.obs, torch.Tensor)
    memory = rollout.obs.numpy()
    slots = trainer.collector.rows.buffer.slots
    assert all(np.shares_memory(slot.obs, memory) for slot in slots[:-1])
    env = make_vec_env("Pendulum-v1", EnvConfig(), 4, 0, RolloutConfig(engine="local"))
    env.reset(slots[0])
    assert not np.array_equal(memory[1], np.zeros_like(memory[1]))
