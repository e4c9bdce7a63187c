"""S7 with memory: every kind, observation, distribution and engine, with episodes that end inside sequences.

And every well-known way to get hidden states wrong is planted once, to see that this would notice.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium as gym
import pytest
import torch

from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.data.records import Rollout, Targets
from surefoot.errors import EnvError
from surefoot.policies import actor_critic
from surefoot.policies.policy import Policy
from surefoot.rollout import sequences
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.samples import samples_of
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from tests.envs.tasks import CounterEnv
from tests.envs.teams import TeamEnv

STEPS, ROWS, TOLERANCE = 40, 4, 1e-5
TASKS = {
    ("flat", "gaussian"): {"id": "PendulumNoVel-v1", "max_episode_steps": 13},
    ("flat", "beta"): {"id": "PendulumNoVel-v1", "max_episode_steps": 13},
    ("flat", "categorical"): {"id": "CartPoleNoVel-v1", "max_episode_steps": 13},
    ("dict", "gaussian"): {"id": "Probe-v0", "kwargs": {"action": "box"}, "max_episode_steps": 13},
    ("dict", "beta"): {"id": "Probe-v0", "kwargs": {"action": "box"}, "max_episode_steps": 13},
    ("dict", "categorical"): {"id": "Probe-v0", "kwargs": {"action": "discrete"}, "max_episode_steps": 13},  # masks
}


def configured(kind: str, form: str, distribution: str, engine: str, ppo: Any = None, **policy: Any) -> Config:
    sizes = {} if kind == "none" else {"hidden_size": 12, "layers": 2}
    memory = {"kind": kind, "shared": policy.pop("shared", False), **sizes}
    return build_config(
        {
            "env": TASKS[form, distribution],
            "policy": {"memory": memory, "distribution": distribution, "hidden": (16,), **policy},
            "rollout": {"num_envs": ROWS, "num_steps": STEPS, "sequence_length": 8, "engine": engine, "workers": 2},
            "ppo": {"batch_size": STEPS, **(ppo or {})},
            "normalize": {"obs": True},
        }
    )


def rollouts(config: Config, count: int = 2, source: Any = None) -> Iterator[tuple[Rollout, Policy]]:
    env = build_env(config, source)
    try:
        policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
        with torch.no_grad():
            for name, parameter in policy.named_parameters():  # log-probs that say which action they belong to
                parameter.mul_(50 if name.startswith("head") and name.endswith("weight") else 1)
                parameter.mul_(10 if "weight_ih" in name else 1)
        collector = build_collector(config, env, policy)
        for _ in range(count):
            yield collector.collect(policy), policy
    finally:
        env.close()


@torch.no_grad()
def largest_difference(rollout: Rollout, policy: Policy, config: Config) -> float:
    """Of log-probs and values, recomputed in shuffled minibatches of sequences."""
    samples = samples_of(rollout, Targets(rollout.reward, rollout.reward), config.ppo)
    samples.begin_epoch(policy)
    order = torch.randperm(samples.num_units, generator=torch.Generator().manual_seed(2))
    found = 0.0
    for batch in samples.minibatches(config.ppo.batch_size, order):
        output = policy(*batch.inputs)
        log_prob = (output.distribution.log_prob(batch.action) - batch.log_prob).abs().max()
        found = max(found, float(log_prob), float((output.value - batch.value).abs().max()))
    return found


def assert_ratio_is_one(config: Config) -> None:
    for rollout, policy in rollouts(config):
        inside = rollout.episode_start.clone()
        inside[::8] = False
        assert inside.any(), "an episode must end inside a sequence for this test to say anything"
        assert rollout.log_prob.std() > 1e-3
        assert largest_difference(rollout, policy, config) < TOLERANCE


@pytest.mark.parametrize("engine", ["local", "processes", "native"])
@pytest.mark.parametrize(("form", "distribution"), TASKS)
@pytest.mark.parametrize("kind", ["none", "gru", "lstm"])
def test_every_mix(kind, form, distribution, engine):
    assert_ratio_is_one(configured(kind, form, distribution, engine))


@pytest.mark.parametrize("engine", ["local", "native"])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize(
    "settings",
    [
        {"share_trunk": True},
        {"shared": True},
        {"shared": True, "critic_obs": ("wheel",)},
        {"critic_obs": ("wheel",)},
        {"encoders": {"wheel": {"kind": "mlp", "layers": (7,)}}},
    ],
    ids=["trunk shared", "memory shared", "memory shared, critic sees more", "critic sees more", "encoders"],
)
def test_actor_and_critic_share_or_do_not(settings, kind, engine):
    assert_ratio_is_one(configured(kind, "dict", "categorical", engine, **settings))


@pytest.mark.parametrize("distribution", ["gaussian", "tanh_gaussian", "beta"])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_cameras_beside_numbers(kind, distribution):
    source = partial(CounterEnv, form="picture dict", actions="box", lengths=(13, 7))
    policy = {"encoders": {"camera": {"kind": "conv", "channels": (4,), "kernels": (3,), "strides": (2,)}}}
    config = configured(kind, "dict", "gaussian", "local", **policy)
    config = build_config(config.model_dump(mode="json"), {"policy.distribution": distribution})
    for rollout, made in rollouts(config, source=source):
        assert largest_difference(rollout, made, config) < TOLERANCE


@pytest.mark.parametrize("ppo", [{"sequence_state": "recomputed"}, {"burn_in": 5}, {"burn_in": 100}], ids=str)
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_recomputed_states_are_the_stored_ones_before_anything_is_learned(kind, ppo):
    assert_ratio_is_one(configured(kind, "flat", "categorical", "native", ppo=ppo))


def test_recomputed_states_move_with_the_weights():
    config = configured("gru", "flat", "gaussian", "native", ppo={"sequence_state": "recomputed"})
    for rollout, policy in rollouts(config, 1):
        targets = Targets(rollout.reward, rollout.reward)
        recomputed, stored = (samples_of(rollout, targets, ppo) for ppo in (config.ppo, build_config({}).ppo))
        with torch.no_grad():
            policy.actor_body.memory.cells.weight_hh_l0.mul_(0.5)
        for samples in (recomputed, stored):
            samples.begin_epoch(policy)
        (new,), (old,) = (list(samples.minibatches(10_000)) for samples in (recomputed, stored))
        moved = (new.state[0] - old.state[0]).abs().amax((1, 2)) > 1e-4
        assert moved[~new.episode_start[: len(moved)]].any()
        first, following = (
            (new - old).abs().max() > 1e-4
            for new, old in zip(recomputed.state[0][:2], stored.state[0][:2], strict=True)
        )
        assert following
        assert not first, "a rollout begins with what was remembered then"


def planted_early_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten = actor_critic._forgotten

    def early(state: Any, episode_start: torch.Tensor) -> Any:
        return forgotten(state, episode_start.roll(-1))

    monkeypatch.setattr(actor_critic, "_forgotten", early)


def planted_no_reset_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    split = sequences.split
    monkeypatch.setattr(sequences, "split", lambda start, valid, chunks: split(torch.zeros_like(start), valid, chunks))


def planted_zero_state(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = sequences._entries

    def zeroed(state: Any, *index: torch.Tensor) -> Any:
        return tuple(torch.zeros_like(part) for part in entries(state, *index))

    monkeypatch.setattr(sequences, "_entries", zeroed)


def planted_state_after_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = RolloutBuffer.keep_state

    def late(self: RolloutBuffer, step: int, rows: slice, state: Any) -> None:
        keep(self, step - 1, rows, state)

    monkeypatch.setattr(RolloutBuffer, "keep_state", late)


def planted_wrong_reshape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time-major samples read as if they were row after row."""
    rows = sequences.map_rollout
    monkeypatch.setattr(
        sequences, "map_rollout", lambda function, *rollout: rows(lambda leaf: leaf.flatten(0, 1), *rollout)
    )


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize(
    "plant",
    [
        planted_early_reset,
        planted_no_reset_inside,
        planted_zero_state,
        planted_state_after_the_step,
        planted_wrong_reshape,
    ],
)
def test_hidden_states_gone_wrong_are_noticed(plant: Callable[..., None], kind, monkeypatch):
    config = configured(kind, "flat", "categorical", "local")
    if plant is planted_early_reset:  # only while learning: acting and learning alike would be wrong alike
        for rollout, policy in rollouts(config):
            kept = replace(rollout, state=tuple(part.clone() for part in rollout.state))
            with monkeypatch.context() as patch:
                plant(patch)
                assert largest_difference(kept, policy, config) > 100 * TOLERANCE
        return
    plant(monkeypatch)
    assert max(largest_difference(rollout, policy, config) for rollout, policy in rollouts(config)) > 100 * TOLERANCE


@pytest.mark.parametrize(
    "ppo", [{}, {"burn_in": 3}, {"sequence_state": "recomputed"}], ids=["stored", "burn-in", "again"]
)
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_agents_of_whom_nothing_is_said_for_a_while(kind: str, ppo: dict[str, Any]) -> None:
    script = [{"ann": "aaaasaaaaaaaT", "bob": "aaaaaaaaaaaT"}, {"ann": "aaasssaaT", "bob": "aarraaaT"}]
    config = configured(kind, "flat", "categorical", "local", ppo)
    for rollout, policy in rollouts(config, source=lambda: TeamEnv(script=script)):
        assert not rollout.valid.all()
        assert largest_difference(rollout, policy, config) < TOLERANCE


@pytest.mark.parametrize(
    "ppo", [{}, {"burn_in": 3}, {"sequence_state": "recomputed"}], ids=["stored", "burn-in", "again"]
)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_envs_that_all_reset_at_once_in_a_step_of_its_own(num_envs: int, ppo: dict[str, Any]) -> None:
    """Just before a chunk, no row may have a valid step."""
    makers = [lambda: gym.make("CartPole-v1", max_episode_steps=5)] * num_envs
    env = gym.vector.SyncVectorEnv(makers, autoreset_mode=gym.vector.AutoresetMode.NEXT_STEP)
    config = configured("gru", "flat", "categorical", "local", ppo)
    for rollout, policy in rollouts(config, source=env):
        assert (~rollout.valid).all(dim=1).any()
        assert largest_difference(rollout, policy, config) < TOLERANCE


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_coarser_layers_behind_the_memory(kind: str) -> None:
    """Acting and learning must not differ even in the last bit: bfloat16 would make a thousandth of it."""
    config = configured(kind, "flat", "gaussian", "local", precision="bfloat16")
    for rollout, policy in rollouts(config):
        assert largest_difference(rollout, policy, config) < TOLERANCE


def test_a_rollout_in_which_nothing_counts_is_an_error() -> None:
    config = configured("gru", "flat", "categorical", "local")
    ((rollout, _),) = rollouts(config, 1)
    lost = replace(rollout, valid=torch.zeros_like(rollout.valid))
    for given in (lost, replace(lost, chunks=None, state=())):
        with pytest.raises(EnvError, match="the rollout has no valid steps"):
            samples_of(given, Targets(rollout.reward, rollout.reward), config.ppo)
