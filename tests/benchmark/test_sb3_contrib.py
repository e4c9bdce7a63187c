"""sb3-contrib's RecurrentPPO: the same network, env and numbers as ours, and it counts what it executes."""

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import tasks
from benchmarks.peers import PEERS
from benchmarks.sides import find_side
from benchmarks.tasks import TASKS, Task
from surefoot.compose import Specs, build_env, build_policy
from surefoot.envs.tasks.no_velocity import CartPoleNoVelocity
from tests.benchmark.test_other_peers import count_optimizer_steps

pytestmark = [
    pytest.mark.skipif(find_spec("sb3_contrib") is None, reason="sb3-contrib (extra 'peers') is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]
TINY = Task("tiny", "CartPoleNoVel-v1", 4, 16, 2, 4, (4,), lstm=4)


@pytest.fixture
def recurrent() -> Iterator[Any]:
    """RecurrentPPO at the task of the benchmark."""
    with torch.random.fork_rng(devices=[]):
        peer = PEERS["sb3-contrib"](TASKS["cartpole-memory-8"], threads=1)
    yield peer._model  # type: ignore[attr-defined]
    peer.close()


def sizes(modules: list[nn.Module]) -> Counter[tuple[int, ...]]:
    """How often each shape of parameter occurs."""
    return Counter(tuple(part.shape) for module in modules for part in module.parameters())


def test_both_have_the_same_network(recurrent: Any) -> None:
    """Shapes of all parameters, those of the critic's own memory too."""
    config = TASKS["cartpole-memory-8"].config("local", 1)
    env = build_env(config)
    ours = build_policy(config, Specs(env.obs_spec, env.action_spec))
    env.close()
    assert sizes([ours]) == sizes([recurrent.policy])
    assert sizes([ours])[256, 64] == 2  # of actor and critic: four gates over 64 cells
    assert any(isinstance(module, nn.Tanh) for module in recurrent.policy.mlp_extractor.policy_net)
    assert config.policy.activation == "tanh"


def test_both_have_the_same_numbers_and_env(recurrent: Any) -> None:
    config = TASKS["cartpole-memory-8"].config("local", 1)
    assert (recurrent.n_envs, recurrent.n_steps) == (config.rollout.num_envs, config.rollout.num_steps) == (8, 128)
    assert (recurrent.n_epochs, recurrent.batch_size) == (config.ppo.epochs, config.ppo.batch_size) == (4, 256)
    assert (recurrent.gamma, recurrent.gae_lambda) == (config.ppo.gamma, config.ppo.gae_lambda)
    assert (recurrent.ent_coef, recurrent.vf_coef) == (config.ppo.entropy_coef, config.ppo.value_coef)
    assert (recurrent.clip_range(1), recurrent.clip_range_vf) == (config.ppo.clip, config.ppo.clip_value)
    assert (recurrent.max_grad_norm, recurrent.target_kl) == (config.ppo.max_grad_norm, config.ppo.target_kl)
    assert config.rollout.sequence_length == config.rollout.num_steps
    assert all(isinstance(env.unwrapped, CartPoleNoVelocity) for env in recurrent.get_env().envs)


def test_whole_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many optimizer steps as the task says, on ours as on theirs."""
    taken = count_optimizer_steps(monkeypatch)
    for name in ("sb3-contrib", "local"):
        taken.clear()
        with torch.random.fork_rng(devices=[]):
            peer = find_side(name)(TINY, threads=1)
            try:
                first, second = peer.run(1), peer.run(2)
            finally:
                peer.close()
        assert (first.steps, second.steps) == (64, 128)
        assert min(first.rollout_s, first.learn_s, second.rollout_s, second.learn_s) > 0
        assert len(taken) == 3 * TINY.epochs * TINY.num_minibatches
        assert {(group["lr"], group["eps"]) for group in taken} == {(tasks.LEARNING_RATE, tasks.ADAM_EPS)}
