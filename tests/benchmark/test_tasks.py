"""The tasks of `bench peers`, and that all sides mean the same by them."""

from dataclasses import replace

import pytest

from benchmarks.masked_choice import CHOICES, MaskedChoice
from benchmarks.peers import PEERS
from benchmarks.sides import OURS
from benchmarks.tasks import TASKS, Task

SIZES = {
    "cartpole-8": (8, 128, 4, 4),
    "cartpole-64": (64, 128, 4, 4),
    "halfcheetah-8": (8, 256, 10, 32),
    "halfcheetah-64": (64, 64, 4, 4),
    "ant-64": (64, 64, 4, 4),
    "humanoid-16": (16, 64, 4, 4),
    "masked-16": (16, 128, 4, 4),
    "cartpole-memory-8": (8, 128, 4, 4),
}


def test_all_tasks_and_their_sizes() -> None:
    assert {
        name: (task.num_envs, task.num_steps, task.epochs, task.num_minibatches) for name, task in TASKS.items()
    } == SIZES


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_task_has_peers_and_a_config(task: Task) -> None:
    assert {"local", "processes"} <= {name for name in OURS if OURS[name].fits(task)}
    assert any(PEERS[name].fits(task) for name in PEERS.names())
    config = task.config("processes", threads=2)
    assert config.rollout.engine.kind == "processes"
    assert config.train.threads == 2
    assert config.rollout.size == task.num_minibatches * config.ppo.batch_size
    assert config.policy.memory.kind == ("lstm" if task.has_memory else "none")


@pytest.mark.parametrize("name", ["cartpole-8", "humanoid-16"])
def test_surefoot_and_stable_baselines3_get_the_same_numbers(name: str) -> None:
    from benchmarks.peers.stable_baselines3 import settings

    task = TASKS[name]
    theirs, ours = settings(task), task.config("local", 1)
    assert theirs["n_steps"] == ours.rollout.num_steps
    assert theirs["batch_size"] == ours.ppo.batch_size
    assert theirs["n_epochs"] == ours.ppo.epochs
    assert theirs["learning_rate"] == ours.optimizer.lr
    assert theirs["clip_range"] == ours.ppo.clip
    assert theirs["max_grad_norm"] == ours.ppo.max_grad_norm
    assert (theirs["gamma"], theirs["gae_lambda"]) == (ours.ppo.gamma, ours.ppo.gae_lambda)
    networks = theirs["policy_kwargs"]["net_arch"]
    assert networks == {"pi": list(ours.policy.hidden), "vf": list(ours.policy.hidden)}
    assert theirs["policy_kwargs"]["activation_fn"].__name__.lower() == ours.policy.activation
    assert not ours.policy.share_trunk


def test_the_masked_task_tells_both_sides_the_same_mask() -> None:
    env = MaskedChoice()
    obs, infos = env.reset(seed=0)
    for _ in range(20):
        mask = env.action_masks()
        assert (mask == infos["action_mask"]).all()
        allowed = [choice for choice in range(CHOICES) if mask[choice]]
        best = max(allowed, key=lambda choice: obs[choice])
        obs, reward, *_, infos = env.step(best)
        assert reward == 1.0
    with pytest.raises(ValueError, match="is masked"):
        env.step(next(choice for choice in range(CHOICES) if not env.action_masks()[choice]))


def test_who_remembers() -> None:
    """Those who know no memory take no part; sb3-contrib has nothing of its own for plain tasks."""
    task = TASKS["cartpole-memory-8"]
    assert [name for name in PEERS.names() if PEERS[name].fits(task)] == ["sb3-contrib"]
    assert all(side.fits(task) for side in OURS.values())
    special = {name for name, task in TASKS.items() if PEERS["sb3-contrib"].fits(task)}
    assert special == {"masked-16", "cartpole-memory-8"}
    assert not PEERS["sb3-contrib"].fits(replace(TASKS["masked-16"], lstm=8))
    assert "LSTM 64, 64 tanh" in TASKS["cartpole-memory-8"].title
