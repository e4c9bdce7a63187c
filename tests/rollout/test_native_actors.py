"""Several policies in a native rollout: the same rollouts as the stepwise collector's, whoever acts where."""

import logging
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.data.records import Rollout
from surefoot.errors import PolicyError
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.native import NativeCollector
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.verification.legs import tensors_of

ROWS, STEPS = 12, 24
LSTM = {"policy.memory": "lstm", "policy.memory.hidden_size": 8, "rollout.sequence_length": 8}
OWN_CRITIC = LSTM | {"policy.share_memory": False, "policy.share_trunk": False}
TASKS: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"normalize.obs": True},
    "Pendulum-v1": {"policy.distribution": "beta"},
    "CartPoleNoVel-v1": LSTM,
    "Acrobot-v1": OWN_CRITIC | {"policy.critic": "quantile"},
}


def configured(env_id: str, engine: str = "native", workers: int = 2, **settings: Any) -> Config:
    sizes = {"rollout.num_envs": ROWS, "rollout.num_steps": STEPS, "ppo.batch_size": ROWS * STEPS}
    sizes |= {"rollout.engine": engine, "rollout.workers": workers if engine != "local" else 0}
    return build_config({"env.id": env_id, "env.max_episode_steps": 7}, {"policy.hidden": [16], **sizes, **settings})


def made(config: Config, env: Any, seed: int) -> Policy:
    torch.manual_seed(seed)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return policy


def cast(config: Config) -> tuple[Collector, Policy]:
    """The learner, a policy of another size without memory, and one that the learner follows."""
    env = build_env(config)
    policy = made(config, env, 1)
    collector = build_collector(config, env, policy)
    settings = {"policy.hidden": [8, 8], "policy.memory": "none", "normalize.obs": True}
    small = build_config(config.model_dump(mode="json"), settings)
    collector.rows.actors.add("small", made(small, env, 2))
    collector.rows.actors.add("followed", made(config, env, 3), is_followed=True)
    collector.rows.actors.add("idle", made(config, env, 4))
    return collector, policy


ASSIGNMENTS = [{"small": [0, 1, 5], "followed": [3, 10]}, {"followed": [1], "": [0, 5]}, {"": list(range(ROWS))}, {}]


def collected(collector: Collector, policy: Policy, assignments: Any = ASSIGNMENTS) -> list[tuple[Any, Rollout]]:
    """Rollouts with the rows of others as they change; everything that is kept of each."""
    found = []
    for rows in assignments:
        for name, places in rows.items():
            collector.rows.actors.assign(places, name)
        rollout = collector.collect(policy)
        memory = collector.rows.actors.state()["memory"]
        kept = tensors_of(collector.rows.buffer)
        kept |= {f"memory {part}": tensor for part, tensor in enumerate(collector.rows.memory)}
        kept |= {f"{name} {part}": tensor for name in memory for part, tensor in enumerate(memory[name])}
        found.append((kept, rollout))
    return found


@pytest.mark.parametrize("env_id", TASKS)
def test_what_the_stepwise_collector_gives(env_id):
    pairs = [cast(configured(env_id, engine, **TASKS[env_id])) for engine in ("native", "local")]
    assert [type(collector) for collector, _ in pairs] == [NativeCollector, StepwiseCollector]
    pairs[0][0]._stepwise = None  # it must not be used
    for (ours, our), (theirs, their) in zip(*(collected(*pair) for pair in pairs), strict=True):
        ours.pop("metrics", None), theirs.pop("metrics", None)
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            if value.is_floating_point():
                torch.testing.assert_close(value, theirs[name], rtol=1e-3, atol=1e-3, msg=lambda t, n=name: n + t)
            else:
                assert torch.equal(value, theirs[name]), name
        assert our.stats.finished.lengths.tolist() == their.stats.finished.lengths.tolist()
        assert (our.stats.num_steps, our.stats.obs_out_of_bounds) == (their.num_steps, their.stats.obs_out_of_bounds)
        np.testing.assert_allclose(our.stats.finished.total_rewards, their.stats.finished.total_rewards, atol=1e-3)
        for key, moments in (our.obs_moments or {}).items():
            expected = theirs[f"obs {key}".strip()][:-1][theirs["valid"]].double()
            torch.testing.assert_close(moments.mean, expected.mean(0), rtol=1e-3, atol=1e-3)
            assert moments.count == len(expected)
    assert pairs[0][0].rows.actors.acting() == pairs[1][0].rows.actors.acting()


def test_who_acted_is_recorded_and_assignments_wait_for_the_next_episode():
    collector, policy = cast(configured("Pendulum-v1"))
    numbers = collector.rows.actors.numbers
    assert numbers == {"": 0, "small": 1, "followed": 2, "idle": 3}
    kept = [fields["actor"] for fields, _ in collected(collector, policy)]
    assert kept[0].dtype == torch.int64
    assert kept[0][:, [0, 1, 2, 3]].unique(dim=0).tolist() == [[1, 1, 0, 2]]
    # Episodes take 7 steps and rollouts 24: the second begins with step 3 of an episode, the third with step 6.
    assert kept[1][:, 1].tolist() == [1] * 4 + [2] * 20
    assert kept[1][:, 0].tolist() == [1] * 4 + [0] * 20
    assert kept[2][:, 1].tolist() == [2] * 1 + [0] * 23
    assert not kept[3].any()


def test_fields_of_other_rows_have_the_action_alone():
    collector, policy = cast(configured("CartPoleNoVel-v1", **LSTM))
    ((kept, rollout),) = collected(collector, policy, ASSIGNMENTS[:1])
    others = rollout.extras["actor"] > 0
    assert others.any(0).tolist() == [place in (0, 1, 3, 5, 10) for place in range(ROWS)]
    assert not rollout.valid[others].any()
    assert rollout.num_steps == int(rollout.valid.sum()) == STEPS * 7
    assert len(rollout.stats.finished) == int((rollout.valid & (rollout.terminated | rollout.truncated)).sum())
    for name in ("log_prob", "value", "final_value"):
        assert not kept[name][others].any(), name
        assert kept[name][~others].any(), name
    assert kept["action"][others].any()
    assert not kept["last_value"][[0, 1, 3, 5, 10]].any()
    memory = kept["memory 0"].flatten(1).abs().sum(1) > 0
    assert memory.tolist() == [place not in (0, 1, 5) for place in range(ROWS)], "only followed rows are remembered"


def test_a_copy_of_the_learner_acts_as_the_learner_does():
    """Noise is by the number of the row: who acts does not change what is drawn."""
    alone, together = (cast(configured("CartPoleNoVel-v1", **LSTM)) for _ in range(2))
    actors = together[0].rows.actors
    actors.add("copy", deepcopy(together[1]))
    actors.assign(slice(1, None, 2), "copy")
    for _ in range(2):
        expected, ours = alone[0].collect(alone[1]), together[0].collect(together[1])
        for name in ("obs", "action", "reward", "terminated", "truncated", "episode_start"):
            assert torch.equal(getattr(ours, name), getattr(expected, name)), name
        assert torch.equal(ours.value[:, ::2], expected.value[:, ::2])
        assert not ours.valid[:, 1::2].any()


@pytest.mark.parametrize("env_id", ["CartPoleNoVel-v1", "Pendulum-v1"])
def test_the_same_bytes_for_any_number_of_threads(env_id):
    results = [collected(*cast(configured(env_id, workers=workers, **TASKS[env_id]))) for workers in (1, 2, 3)]
    for other in results[1:]:
        for (expected, _), (ours, _) in zip(results[0], other, strict=True):
            for name, value in expected.items():
                assert torch.equal(value, ours[name]) or value.isnan().any(), name


@pytest.mark.parametrize("engine", ["native", "local", "processes"])
def test_they_continue_bit_for_bit_from_a_file(engine, tmp_path):
    config = configured("CartPoleNoVel-v1", engine, workers=1, **LSTM)
    one, policy = cast(config)
    collected(one, policy, ASSIGNMENTS[:2])
    one.rows.actors.assign([4], "followed")
    write_checkpoint(Path(tmp_path / "rows.safetensors"), one.rows.state())
    other, _ = cast(config)
    with one.rows.env, other.rows.env:
        other.rows.actors.add("later", deepcopy(policy))
        other.rows.load_state(read_checkpoint(tmp_path / "rows.safetensors"))
        assert other.rows.actors.numbers["later"] == 4
        assert other.rows.actors.acting() == one.rows.actors.acting()
        for (expected, _), (ours, _) in zip(collected(one, policy), collected(other, policy), strict=True):
            assert ours.pop("later 0", None) is not None
            for name, value in expected.items():
                assert torch.equal(value, ours[name]), name


def test_policies_are_removed_when_nobody_needs_them():
    collector, policy = cast(configured("Pendulum-v1"))
    actors = collector.rows.actors
    actors.assign([2, 3], "small")
    with pytest.raises(PolicyError, match="'small' cannot be removed: it still acts in 2 rows, such as row 2; assign"):
        actors.remove("small")
    collector.collect(policy)
    actors.assign([2, 3])
    with pytest.raises(PolicyError, match="still acts"):  # until its episodes end
        actors.remove("small")
    collector.collect(policy)
    actors.remove("small")
    with pytest.raises(PolicyError, match="unknown policy 'small'"):
        actors.assign([1], "small")
    with pytest.raises(PolicyError, match="unknown policy 'small'"):
        actors.remove("small")
    assert actors.numbers["small"] == 1, "its number is not given to another"
    assert not collector.collect(policy).extras["actor"].any()


class OwnPolicy(ActorCritic):
    """Of a class that the core does not know."""


@pytest.mark.parametrize("kind", ["function", "class"])
def test_what_the_core_cannot_run_is_stepped_with_a_reason(kind, caplog):
    collector, policy = cast(configured("CartPole-v1"))
    own = deepcopy(policy)
    own.__class__ = OwnPolicy
    collector.rows.actors.add("own", own if kind == "class" else lambda obs: np.ones(len(obs), int))
    collector.rows.actors.assign([0], "own")
    collector.rows.actors.assign([1], "small")
    with caplog.at_level(logging.INFO, "surefoot"):
        rollouts = [collector.collect(policy) for _ in range(2)]
    (message,) = [record.message for record in caplog.records if "step by step" in record.message]
    assert "'own'" in message
    assert ("Python function" if kind == "function" else "OwnPolicy") in message
    assert rollouts[1].extras["actor"][:, :3].unique(dim=0).tolist() == [[4, 1, 0]]
    if kind == "function":
        assert rollouts[1].action[:, 0].eq(1).all()


def test_a_policy_of_another_env_is_refused():
    collector, policy = cast(configured("CartPole-v1"))
    other, _ = cast(configured("Pendulum-v1"))
    with pytest.raises(PolicyError, match="'swinging' cannot act in these envs; it may be a policy for other envs"):
        collector.rows.actors.add("swinging", made(configured("Pendulum-v1"), other.rows.env, 1))
    assert "swinging" not in collector.rows.actors.numbers
    collector.collect(policy)


def test_a_policy_that_observes_fewer_keys_is_stepped(caplog: pytest.LogCaptureFixture) -> None:
    config = configured("Probe-v0", **{"policy.memory": "none"})
    env = build_env(config)
    policy, obs = made(config, env, 1), dict(env.obs_spec)
    obs.pop(next(iter(obs)))
    collector = build_collector(config, env, policy)
    collector.rows.actors.add("modest", build_policy(config, Specs(obs, env.action_spec)))
    collector.rows.actors.assign([0, 1], "modest")
    with caplog.at_level(logging.INFO, "surefoot"):
        assert collector.collect(policy).extras["actor"][:, :2].max() == 1
    assert "step by step, because 'modest', which acts in some rows, observes only some of the keys" in caplog.text
    env.close()
