"""The native collector: the same rollouts for any number of threads and rows, and as the stepwise collector's."""

import hashlib
import logging
import math
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch

from surefoot.compose import Specs, build_collector, build_env, build_policy, build_trainer
from surefoot.data.moments import Moments
from surefoot.data.records import Rollout
from surefoot.data.tree import tree_items
from surefoot.envs.engines.local import LocalEngine
from surefoot.errors import NativeError, NonFiniteError, PolicyError
from surefoot.policies.encoders.identity import IdentityEncoder
from surefoot.policies.policy import Policy
from surefoot.rollout.choice import collector_of
from surefoot.rollout.collector import Collector
from surefoot.rollout.fields import COLLECTOR, Field, array
from surefoot.rollout.native import NativeCollector
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.run import Run
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from tests.running_threads import running_threads, settled_threads

STEPS = 24


def configured(env_id: str = "CartPole-v1", rows: int = 8, engine: str = "native", **settings) -> Config:
    rollout = {"num_envs": rows, "num_steps": STEPS, "engine": engine, "workers": settings.pop("workers", 2)}
    env = {"id": env_id, **settings.pop("env", {})}
    return build_config({"env": env, "rollout": rollout, "ppo": {"batch_size": rows * STEPS}, **settings})


def make(config: Config) -> tuple[Collector, Policy]:
    env = build_env(config)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    with torch.no_grad():
        for index, parameter in enumerate(policy.parameters()):
            parameter += 0.05 * torch.sin(torch.arange(parameter.numel()).reshape(parameter.shape) + index)
    return build_collector(config, env, policy), policy


def tensors(rollout: Rollout) -> dict[str, torch.Tensor]:
    found = {f"obs {key}": leaf for key, leaf in tree_items(rollout.obs)}
    return found | {name: value for name, value in vars(rollout).items() if isinstance(value, torch.Tensor)}


def digest(rollout: Rollout) -> str:
    joined = hashlib.sha256()
    for name, value in sorted(tensors(rollout).items()):
        joined.update(name.encode() + value.contiguous().numpy().tobytes())
    joined.update(rollout.stats.finished.total_rewards.tobytes() + rollout.stats.finished.lengths.tobytes())
    for moments in (rollout.obs_moments or {}).values():
        joined.update(moments.mean.numpy().tobytes() + moments.var.numpy().tobytes())
    return joined.hexdigest()


@pytest.mark.parametrize("env_id", ["CartPole-v1", "HalfCheetah-v5", "Hopper-v5"])
def test_the_same_bytes_for_any_number_of_threads(env_id):
    digests = set()
    for workers in (1, 2, 4, 7):
        settings = {"env": {"max_episode_steps": 13}, "normalize": {"obs": True}, "workers": workers}
        collector, policy = make(configured(env_id, 37, **settings))
        digests.add(tuple(digest(collector.collect(policy)) for _ in range(2)))
    assert len(digests) == 1


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Walker2d-v5"])
def test_a_row_is_the_same_with_8_and_with_64_envs(env_id):
    few, many = (make(configured(env_id, rows, env={"max_episode_steps": 13})) for rows in (8, 64))
    for _ in range(2):
        eight, all_64 = (tensors(collector.collect(policy)) for collector, policy in (few, many))
        for name, value in eight.items():
            whole = all_64[name]
            assert torch.equal(value, whole[..., :8] if name == "last_value" else whole[:, :8]), name


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1"])
def test_what_the_stepwise_collector_gives(env_id):
    """These dynamics are gentle enough that rounding of the policy does not grow within a rollout."""
    settings = {"env": {"max_episode_steps": 11}, "normalize": {"obs": True}}
    (native, policy), (stepwise, other) = (make(configured(env_id, 8, e, **settings)) for e in ("native", "local"))
    assert isinstance(stepwise, StepwiseCollector)
    for _ in range(2):
        ours, theirs = native.collect(policy), stepwise.collect(other)
        for name, value in tensors(ours).items():
            expected = tensors(theirs)[name]
            if value.dtype == torch.float32:
                torch.testing.assert_close(
                    value, expected, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: name + text
                )
            else:
                assert torch.equal(value, expected), name
        assert ours.truncated.any()
        assert (ours.final_value != 0).any()
        assert len(ours.stats.finished) == len(theirs.stats.finished) > 8
        np.testing.assert_allclose(
            ours.stats.finished.total_rewards, theirs.stats.finished.total_rewards, rtol=1e-4, atol=1e-3
        )
        assert ours.stats.finished.lengths.tolist() == theirs.stats.finished.lengths.tolist()
        assert [episode.length for episode in ours.stats.recent] == [episode.length for episode in theirs.stats.recent]
        assert ours.num_steps == theirs.num_steps == 8 * STEPS
        for one, learner in ((ours, policy), (theirs, other)):
            learner.absorb(one.obs.flatten(0, 1), one.obs_moments)


def test_the_moments_are_those_of_the_rollout():
    collector, policy = make(configured("HalfCheetah-v5", 5, normalize={"obs": True}))
    rollout = collector.collect(policy)
    expected = Moments.of(rollout.obs.flatten(0, 1))
    assert rollout.obs_moments is not None
    moments = rollout.obs_moments[""]
    assert moments.count == expected.count
    torch.testing.assert_close(moments.mean, expected.mean, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(moments.var, expected.var, rtol=1e-10, atol=1e-12)


def test_observations_outside_their_box_are_counted():
    """Acrobot's velocities never leave their bounds, Pendulum's never either; a cart far out does."""
    collector, policy = make(configured(rows=4))
    state = collector.rows.env.save_state()
    position = state["rows"].view(np.float64)[:, 5]
    position[:] = [0, 10, -10, 0]
    collector.rows.env.load_state(state)
    buffer = collector.rows.buffer
    buffer.obs[-1, :, 0] = torch.tensor([0.0, 10.0, -10.0, 0.0])
    rollout = collector.collect(policy)
    outside = int((rollout.obs[..., 0].abs() > 4.8).sum())
    assert outside >= 2
    assert rollout.stats.obs_out_of_bounds == outside


def test_a_reward_that_is_not_finite_is_a_typed_error_and_the_next_rollout_starts_anew():
    collector, policy = make(configured("HalfCheetah-v5", 2, env={"kwargs": {"forward_reward_weight": math.inf}}))
    for _ in range(2):
        with pytest.raises(NonFiniteError, match=r"env 0 \(seed \d+\) returned -?inf in its reward at step \d+"):
            collector.collect(policy)


def test_the_table_of_fields_may_hold_more_than_the_core_writes():
    collector, policy = make(configured())
    collector.rows.buffer.add(Field("label", array((3,)), COLLECTOR))
    collector.rows.buffer.label.fill_(7)
    rollout = collector.collect(policy)
    assert rollout.extras["label"].shape == (STEPS, 8, 3)
    assert rollout.extras["label"].eq(7).all()
    assert rollout.learned_extras == ("label",)


def test_weights_are_synced_before_every_rollout():
    collector, policy = make(configured())
    before = collector.collect(policy).value.clone()
    with torch.no_grad():
        policy.critic.head.bias += 100
    assert (collector.collect(policy).value - before).mean() > 90


def test_a_policy_the_core_does_not_know_is_stepped_and_one_line_says_why(caplog):
    config = build_config(configured().model_dump(), {"ppo.epochs": 1})
    env = build_env(config)
    specs = Specs(env.obs_spec, env.action_spec)

    class OwnEncoder(IdentityEncoder):
        def forward(self, obs):
            return super().forward(obs) * 2

    policy = build_policy(config, specs, lambda spec: OwnEncoder(spec, config.policy.encoder, config.policy))
    line = "step by step, native (the encoder OwnEncoder has no native implementation)"
    trainer = build_trainer(config, env, policy)
    assert (trainer.collector.description, trainer.collector.is_native) == (line, False)
    assert trainer.collector.collect(policy).num_steps == 8 * STEPS
    for engine, level in (("native", logging.WARNING), ("auto", logging.INFO)):
        short = {"train.steps": 1, "train.eval_episodes": 0, "log.console": "off"}
        asked = build_config(config.model_dump(), short, {"rollout.engine": engine})
        caplog.clear()
        with caplog.at_level(logging.INFO, "surefoot"):
            Run(trainer, asked, specs).train()
        said = [record for record in caplog.records if record.getMessage() == f"rollouts: {line}"]
        assert [record.levelno for record in said] == [level]


def test_a_run_says_that_it_is_native():
    collector, _ = make(configured(workers=2))
    assert (collector.description, collector.is_native) == ("native on 2 threads", True)


def test_an_engine_outside_the_package_brings_its_collector():
    """By its class, so that it serves subclasses of the engine, too."""

    class OwnEngine(LocalEngine):
        pass

    class OwnCollector(StepwiseCollector):
        pass

    config = configured(engine="local")
    collector_of.register(OwnEngine, OwnCollector)
    env = build_env(config)
    assert type(make_collector(config, env)) is StepwiseCollector
    env.__class__ = OwnEngine
    assert type(make_collector(config, env)) is OwnCollector
    env.close()


def make_collector(config, env):
    return build_collector(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))


def test_torch_has_one_thread_while_all_cores_step_and_its_own_afterwards():
    seen = []
    config = configured()
    env = build_env(config)
    trainer = build_trainer(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))
    collect = trainer.collector.collect

    def watching(policy):
        seen.append(torch.get_num_threads())
        return collect(policy)

    trainer.collector.collect = watching
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        trainer.iterate()
        assert seen == [1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert isinstance(trainer.collector, NativeCollector)
    assert isinstance(make(configured(engine="local"))[0], StepwiseCollector)


def test_what_changes_in_the_policy_besides_its_weights_is_seen():
    collector, policy = make(configured("Pendulum-v1"))
    collector.collect(policy)
    policy.head.std_floor = 50.0
    assert collector.collect(policy).action.std() > 30
    policy.critic.register_forward_hook(lambda module, inputs, output: output * 0)
    with pytest.raises(PolicyError, match="changed during a run with native rollouts"):
        collector.collect(policy)


def test_a_closed_engine_says_so_and_its_threads_are_gone():
    before = settled_threads()
    collector, policy = make(configured(workers=4))
    assert running_threads() == before + 3
    collector.rows.env.close()
    assert settled_threads() == before
    with pytest.raises(NativeError, match="closed"):
        collector.collect(policy)


def test_a_signal_is_heard_in_the_middle_of_a_rollout():
    """A handler that raises ends the rollout; the next one begins anew."""

    class HeardError(Exception):
        pass

    def heard(number, frame):
        raise HeardError

    config = build_config(
        configured("HalfCheetah-v5", 200).model_dump(),
        {"rollout.num_steps": 2000, "ppo.batch_size": 400_000},
    )
    collector, policy = make(config)
    previous = signal.signal(signal.SIGUSR1, heard)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    began = time.monotonic()
    try:
        with pytest.raises(HeardError):
            collector.collect(policy)
    finally:
        signal.signal(signal.SIGUSR1, previous)
        timer.join()
    assert time.monotonic() - began < 5, "the whole rollout takes several times as long"
