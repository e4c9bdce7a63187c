"""Policies that remember: the core against torch over many steps with resets, alone and in whole rollouts."""

import hashlib
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from surefoot.compose import Specs, build_collector, build_env, build_policy
from surefoot.data.records import Rollout
from surefoot.native import core
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.memory.gru import GRUMemory
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import NativePlan, native_tensors, plan_policy
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.native import NativeCollector
from surefoot.settings.config import Config, NormalizeConfig
from surefoot.settings.layers import build_config
from tests.parity.native_policies import ACTIONS, SEED, assert_close, box, build, leaves_of, native, observations

NORMALIZE = NormalizeConfig(obs=True, obs_clip=1.5, returns=True)
ROOM = {"camera": box(2, 3), "joints": box(5), "secret": box(4), "touch": box(1)}
ENCODERS = {"encoders": {"camera": {"kind": "mlp", "layers": (17, 9)}, "secret": {"kind": "mlp", "layers": (3,)}}}
CRITICS: dict[str, dict[str, Any]] = {
    "shared": {"share_trunk": True},
    "separate": {},
    "branch": {"share_memory": True},
    "asymmetric branch": {"share_memory": True, "critic_obs": ("secret",)},
    "asymmetric": {"critic_obs": ("secret",)},
}
ROWS, STEPS = 21, 12


def remembering(obs: Any, distribution: str, kind: str, layers: int = 1, size: int = 24, **settings: Any) -> Any:
    memory = {"kind": kind, "layers": layers, "hidden_size": size}
    normalize = settings.pop("normalize", NormalizeConfig())
    settings.setdefault("hidden", (32,))
    return build(obs, ACTIONS[distribution], normalize, distribution=distribution, memory=memory, **settings)


def flat_zeros(policy: ActorCritic, rows: int) -> list[NDArray[np.float32]]:
    return [part.flatten(1).numpy() for part in policy.initial_state(rows)]


def starts(step: int, rows: int) -> torch.Tensor:
    """Every row has another rhythm."""
    return torch.tensor([step == 0 or (step * 7 + row * 3) % (5 + row % 4) == 0 for row in range(rows)])


@torch.no_grad()
def assert_remembers_alike(policy: ActorCritic, rows: int = ROWS, copy: Any = None) -> None:
    """Both carry their own state: errors add up, and stay within rounding."""
    copy = native(policy) if copy is None else copy
    state, theirs = flat_zeros(policy, rows), policy.initial_state(rows)
    assert copy.state_sizes == [part.shape[1] for part in state]
    size = 50.0 if getattr(policy.critic, "returns", None) else 1.0
    for step in range(STEPS):
        obs, start = observations(policy, rows, seed=step), starts(step, rows)
        before = [part.copy() for part in state]
        carried: Any = {"state": state, "episode_start": start.numpy()}
        alone = copy.value(leaves_of(obs), **carried)
        np.testing.assert_array_equal(state, before)
        action, log_prob, value = copy.act(leaves_of(obs), seed=SEED, step=step, **carried)
        output = policy(obs, theirs, start)
        theirs = output.state
        chosen = torch.from_numpy(action).view(rows, *policy.head.action_shape)
        assert_close(value, output.value, 1e-5, size)
        assert_close(log_prob, output.distribution.log_prob(chosen), 2e-5)
        np.testing.assert_array_equal(alone, value)
        for ours, part in zip(state, theirs, strict=True):
            assert_close(ours, part.flatten(1), 1e-5)


@pytest.mark.parametrize("critic", CRITICS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_every_kind_of_critic(kind: str, layers: int, critic: str) -> None:
    policy = remembering(ROOM, "gaussian", kind, layers, normalize=NORMALIZE, **ENCODERS, **CRITICS[critic])
    assert_remembers_alike(policy)


@pytest.mark.parametrize("distribution", ACTIONS)
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_every_distribution(kind: str, distribution: str) -> None:
    assert_remembers_alike(remembering(box(7), distribution, kind, share_memory=True))
    assert_remembers_alike(remembering(ROOM, distribution, kind, size=9, **ENCODERS, **CRITICS["asymmetric"]))


@pytest.mark.parametrize("size", [1, 7, 33, 64, 256])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_odd_sizes_and_depths(kind: str, size: int) -> None:
    for layers in (1, 3):
        policy = remembering(box(3), "categorical", kind, layers, size, encoder="mlp", hidden=())
        assert_remembers_alike(policy, rows=5)


@pytest.mark.parametrize("instructions", core().instruction_sets())
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_row_does_not_depend_on_its_neighbors(kind: str, instructions: str) -> None:
    policy = remembering(box(9), "gaussian", kind, 2, 37, normalize=NORMALIZE)
    copy = native(policy, instructions)
    assert_remembers_alike(policy, rows=60, copy=copy)

    def run(first: int, rows: int) -> list[NDArray[Any]]:
        state = flat_zeros(policy, rows)
        outputs: list[NDArray[Any]] = []
        for step in range(4):
            (obs,), start = leaves_of(observations(policy, 70, seed=step)), starts(step, 70).numpy()
            part = slice(first, first + rows)
            carried: Any = {"state": state, "episode_start": start[part]}
            outputs += copy.act([obs[part]], seed=SEED, step=step, first_row=first, **carried)
        return outputs + state

    whole = run(0, 70)
    for first, rows in ((0, 1), (69, 1), (3, 2), (20, 13), (1, 48), (0, 49)):
        for ours, all_rows in zip(run(first, rows), whole, strict=True):
            np.testing.assert_array_equal(ours, all_rows[first : first + rows])


def test_new_weights_of_a_memory_get_across() -> None:
    policy = remembering(box(4), "categorical", "lstm", 2)
    copy = native(policy)
    with torch.no_grad():
        for parameter in policy.actor_body.memory.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    copy.sync(native_tensors(policy))
    assert_remembers_alike(policy, copy=copy)


def test_arguments_are_checked_by_name() -> None:
    policy = remembering(box(4), "categorical", "lstm", 2, 3, share_trunk=True)
    copy = native(policy)
    obs, (h, c) = [np.zeros((5, 4), np.float32)], flat_zeros(policy, 5)
    key: Any = {"seed": 0, "step": 0}
    with pytest.raises(ValueError, match="state must be 2 arrays, not 0"):
        copy.act(obs, **key)
    with pytest.raises(ValueError, match=r"state\[1\] must have shape \[5, 6\], not \[5, 5\]"):
        copy.act(obs, state=[h, np.ascontiguousarray(c[:, :5])], **key)
    with pytest.raises(TypeError, match=r"state\[0\] must be a C-contiguous float32 writable array"):
        copy.act(obs, state=[h.astype(np.float64), c], **key)
    c.setflags(write=False)
    with pytest.raises(TypeError, match=r"state\[1\] .* writable"):
        copy.act(obs, state=[h, c], **key)
    copy.value(obs, state=[h, c])  # which only reads
    with pytest.raises(ValueError, match=r"episode_start must have shape \[5\], not \[4\]"):
        copy.value(obs, state=[h, c], episode_start=np.zeros(4, bool))
    with pytest.raises(ValueError, match="state must be 0 arrays, not 1"):
        native(build(box(4), ACTIONS["categorical"])).value(obs, state=[h])


@pytest.mark.parametrize(
    ("entry", "value", "problem"),
    [
        ("kind", "elman", r"plan\.actor\.memory\.kind is 'elman', which the core does not know"),
        ("layers", None, r"plan\.actor\.memory\.layers has the wrong type"),
        ("hidden", 0, r"plan\.actor\.memory\.hidden must be a whole number of at least 1"),
        ("depth", 2, r"plan\.actor\.memory\.depth is unknown to the kind 'gru'"),
    ],
)
def test_plans_that_make_no_sense_are_named(entry: str, value: object, problem: str) -> None:
    plan = plan_policy(remembering(box(4), "categorical", "gru"))
    assert isinstance(plan, NativePlan)
    plan.plain["actor"]["memory"][entry] = value
    with pytest.raises((ValueError, TypeError), match=problem):
        core().Policy(plan.plain)


def test_memories_of_another_type_are_left_to_torch() -> None:
    class Own(GRUMemory):
        pass

    policy = remembering(box(4), "categorical", "gru")
    policy.actor_body.memory = Own(4, GRUMemory.Settings(kind="gru"))
    assert plan_policy(policy) == NotNative("the memory Own has no native implementation")
    policy = remembering(box(4), "categorical", "gru")
    policy.actor_body.memory.cells = nn.GRU(4, 24, bidirectional=True)
    assert "standard recurrent layers, not actor_body.memory.cells" in str(plan_policy(policy))


def configured(rows: int, kind: str = "gru", engine: str = "native", workers: int = 2, **policy: Any) -> Config:
    rollout = {"num_envs": rows, "num_steps": 24, "engine": engine, "workers": workers, "sequence_length": 10}
    return build_config(
        {
            "env": {"id": "CartPole-v1", "max_episode_steps": 13},
            "rollout": rollout,
            "policy": {"memory": {"kind": kind, "hidden_size": 19, "layers": 2}, **policy},
            "normalize": {"obs": True},
            "ppo": {"batch_size": rows * 24, "sequence_state": "recomputed", "burn_in": 3},
        }
    )


def make(config: Config) -> tuple[Collector, Policy]:
    env = build_env(config)
    policy = build_policy(config, Specs(env.obs_spec, env.action_spec))
    return build_collector(config, env, policy), policy


def collected(config: Config, rollouts: int = 2) -> list[dict[str, NDArray[Any]]]:
    """What some rollouts hold, and what rows remember after each."""
    collector, policy = make(config)
    assert isinstance(collector, NativeCollector) == (config.rollout.engine.kind == "native")
    return [rollout_and_memory(collector, policy) for _ in range(rollouts)]


def rollout_and_memory(collector: Collector, policy: Policy) -> dict[str, NDArray[Any]]:
    arrays = arrays_of(collector.collect(policy))
    return arrays | {f"memory {i}": part.numpy().copy() for i, part in enumerate(collector.rows.memory)}


def arrays_of(rollout: Rollout) -> dict[str, NDArray[Any]]:
    tensors = {name: value for name, value in vars(rollout).items() if isinstance(value, torch.Tensor)}
    tensors |= {f"state {i}": part for i, part in enumerate(rollout.state)}
    assert (rollout.final_value != 0).any()
    return {name: value.numpy().copy() for name, value in tensors.items()}


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_rollouts_are_the_same_bytes_for_any_number_of_threads(kind: str) -> None:
    digests = set()
    for workers in (1, 2, 4, 7):
        joined = hashlib.sha256()
        for arrays in collected(configured(37, kind, workers=workers)):
            for name in sorted(arrays):
                joined.update(name.encode() + arrays[name].tobytes())
        digests.add(joined.hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_row_is_the_same_with_8_and_with_64_envs(kind: str) -> None:
    for eight, all_64 in zip(collected(configured(8, kind)), collected(configured(64, kind)), strict=True):
        assert eight.keys() == all_64.keys()
        for name, value in eight.items():
            first = name == "last_value" or name.startswith("memory")
            np.testing.assert_array_equal(value, all_64[name][:8] if first else all_64[name][:, :8], name)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_what_the_stepwise_collector_gives(kind: str, shared: bool) -> None:
    """Chunks, carried states, values of cut-off ends and of what follows the last step."""
    both = (collected(configured(8, kind, engine, share_memory=shared)) for engine in ("native", "local"))
    for ours, theirs in zip(*both, strict=True):
        assert ours.keys() == theirs.keys()
        assert len([name for name in ours if name.startswith("state")]) == (1 if kind == "gru" else 2) * (2 - shared)
        for name, value in ours.items():
            np.testing.assert_allclose(value, theirs[name], rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_rows_go_on_remembering_after_a_resume(kind: str) -> None:
    (stopped, policy), (resumed, _) = make(configured(5, kind)), make(configured(5, kind))
    stopped.collect(policy)
    saved = deepcopy(stopped.rows.state())
    assert all(part.abs().max() > 0 for part in saved["memory"])
    resumed.rows.load_state(saved)
    assert resumed.rows.is_exact
    ours, theirs = (rollout_and_memory(collector, policy) for collector in (stopped, resumed))
    for name, value in ours.items():
        np.testing.assert_array_equal(theirs[name], value, name)


@pytest.mark.parametrize(
    ("entry", "change", "problem"),
    [
        ("memory", lambda parts: parts[:1], "memory must be 4 arrays, not 1"),
        ("memory", lambda parts: [parts[0][:, :-1].copy(), *parts[1:]], r"memory\[0\] must have shape \[3, 38\], not"),
        ("stored_state", lambda parts: [*parts[:3], parts[3][:2]], r"stored_state\[3\] must have shape \[3, 3, 38\]"),
        ("stored_state", lambda _: (), "stored_state must be 4 arrays, not 0"),
        (
            "state_steps",
            lambda steps: [steps[0][::-1].copy()],
            "state_steps must be steps of the rollout, in ascending order",
        ),
        ("state_steps", lambda steps: [np.array([*steps[0][:2], 24])], "state_steps must be steps of the rollout"),
    ],
)
def test_arrays_of_a_rollout_are_checked_by_name(entry: str, change: Any, problem: str) -> None:
    collector, policy = make(configured(3, "lstm"))
    native_collector: Any = collector
    arrays = native_collector._memory_arrays
    native_collector._memory_arrays = lambda memory: arrays(memory) | {entry: change(arrays(memory)[entry])}
    with pytest.raises(ValueError, match=problem):
        collector.collect(policy)
