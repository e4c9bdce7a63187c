"""How many threads learn, and that weights do not depend on it."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.compose import Specs, build_env, build_policy
from surefoot.learning import devices
from surefoot.learning.devices import execution_of
from surefoot.learning.learner import Learner
from surefoot.native.kernels import kernel_threads
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config


def made(batch_size: int, policy: dict[str, Any], **ppo: Any) -> tuple[Policy, Config]:
    rows = {"num_envs": 64, "num_steps": 256}
    parts = {"policy": policy, "ppo": {"batch_size": batch_size, **ppo}, "rollout": rows}
    config = build_config({"env": {"id": "CartPole-v1"}}, parts)
    env = build_env(config)
    return build_policy(config, Specs(env.obs_spec, env.action_spec)), config


def threads_of(*arguments: Any, **ppo: Any) -> int:
    policy, config = made(*arguments, **ppo)
    asked = config.model_copy(update={"train": config.train.model_copy(update={"threads": 8})})
    return execution_of(asked, policy, False).torch_threads


def test_torch_has_threads_where_it_has_work() -> None:
    large = {"hidden": [512, 512]}
    assert threads_of(16, large) == 1
    assert threads_of(4096, large) == 8
    assert threads_of(4096, large, micro_batch_size=8) == 1
    assert threads_of(64, {"hidden": [64, 64]}) == 1
    config = made(4096, large)
    assert execution_of(config[1], config[0], False, learns_in_core=True).torch_threads == 1


def test_what_is_asked_for_is_set() -> None:
    before = torch.get_num_threads(), kernel_threads().count
    policy, config = made(64, {"hidden": [512, 512], "activation": "gelu"})
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


TRAINED = {  # env, envs, steps, batch and policy
    # With several threads of PyTorch, the bits of this one differ.
    "few samples of wide layers": ("HalfCheetah-v5", 6, 16, 96, {"hidden": [256, 256]}),
    "large minibatches": ("CartPole-v1", 16, 64, 1024, {"hidden": [256, 256], "activation": "relu"}),
    "wide layers that the core has for their work": ("CartPole-v1", 4, 32, 64, {"hidden": [1024, 512]}),
    "a large GRU": ("PendulumNoVel-v1", 8, 48, 384, {"memory": {"kind": "gru", "hidden_size": 256}}),
    "a large LSTM": ("PendulumNoVel-v1", 8, 48, 384, {"memory": {"kind": "lstm", "hidden_size": 256}}),
}


@pytest.mark.parametrize("case", TRAINED)
def test_trained_weights_do_not_depend_on_threads_or_workers(case: str) -> None:
    env, num_envs, num_steps, batch_size, policy = TRAINED[case]
    trained = []
    for threads, workers in ((1, 1), (2, 3), (7, 2)):
        sizes = {"num_envs": num_envs, "num_steps": num_steps, "batch_size": batch_size, "epochs": 2}
        agent = PPO(env, policy=dict(policy), **sizes, threads=threads, workers=workers, seed=1)
        agent.learn(num_envs * num_steps)
        trained.append(agent.policy.state_dict())
    for other in trained[1:]:
        assert all(torch.equal(one, other[name]) for name, one in trained[0].items())


def test_a_resumed_run_keeps_its_threads_on_a_machine_with_more_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"rollout.num_envs": 4, "rollout.num_steps": 16, "ppo.batch_size": 64, "ppo.epochs": 1}
    sizes |= {"policy.hidden": "512,512", "train.learner": "torch", "train.eval_episodes": 0, "train.steps": 64}
    run = str(tmp_path / "run")
    monkeypatch.setattr(devices, "available_cores", lambda: 2)
    assert (
        main(["train", "CartPole-v1", *(f"--{name}={value}" for name, value in sizes.items()), "--run-dir", run]) == 0
    )
    monkeypatch.setattr(devices, "available_cores", lambda: 3)
    used: list[int] = []
    learn = Learner.learn

    def watched(self: Learner, *arguments: Any) -> Any:
        used.append(torch.get_num_threads())
        return learn(self, *arguments)

    monkeypatch.setattr(Learner, "learn", watched)
    assert main(["resume", run, "--train.steps=128"]) == 0
    assert main(["resume", run, "--train.steps=192", "--train.threads=3"]) == 0
    assert main(["resume", run, "--train.steps=256"]) == 0, "the changed number is kept, too"
    assert used == [2, 3, 3]


@pytest.mark.parametrize(("learner", "is_said"), [("torch", True), ("native", False)])
def test_a_run_says_if_its_bits_depend_on_threads(
    learner: str, is_said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sizes = {"num_envs": 4, "num_steps": 16, "batch_size": 64, "epochs": 1, "threads": 2, "learner": learner}
    with caplog.at_level(logging.INFO, "surefoot"):
        PPO("CartPole-v1", policy={"hidden": [512, 512]}, **sizes).learn(64)
    said = "PyTorch learns on 2 threads; the last bits"
    assert (said in caplog.text) == is_said
