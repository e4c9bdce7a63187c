"""The core's policies against torch's: the same noise, the same choices, log-probs and values within rounding."""

from copy import deepcopy
from typing import Any, get_args

import numpy as np
import pytest
import torch

from surefoot.native import core
from surefoot.philox import Stream, uniforms
from surefoot.policies.native_plan import native_tensors
from surefoot.settings.config import Activation, NormalizeConfig
from tests.parity.native_policies import (
    ACTIONS,
    SEED,
    STEP,
    assert_close,
    assert_same,
    box,
    build,
    leaves_of,
    masks,
    native,
    observations,
)

NORMALIZE = NormalizeConfig(obs=True, obs_clip=1.5, returns=True)
ROOM = {"camera": box(2, 3), "joints": box(5), "secret": box(4), "touch": box(1)}
SEVERAL = {"encoders": {"camera": {"kind": "mlp", "layers": (17, 9)}, "secret": {"kind": "mlp", "layers": (3,)}}}


@pytest.mark.parametrize("normalize", [NormalizeConfig(), NORMALIZE], ids=["raw", "normalized"])
@pytest.mark.parametrize("share_trunk", [False, True])
@pytest.mark.parametrize("distribution", ACTIONS)
@pytest.mark.parametrize("activation", get_args(Activation))
def test_every_activation_and_distribution(
    activation: str, distribution: str, share_trunk: bool, normalize: NormalizeConfig
) -> None:
    settings: Any = {"activation": activation, "distribution": distribution, "share_trunk": share_trunk}
    assert_same(build(box(11), ACTIONS[distribution], normalize, hidden=(64, 40), **settings), rows=50)


@pytest.mark.parametrize("normalize", [NormalizeConfig(), NORMALIZE], ids=["raw", "normalized"])
@pytest.mark.parametrize("distribution", ACTIONS)
@pytest.mark.parametrize(
    "settings", [{}, {"share_trunk": True}, {"critic_obs": ("secret",)}], ids=["separate", "shared", "asymmetric"]
)
def test_dict_observations(settings: dict[str, Any], distribution: str, normalize: NormalizeConfig) -> None:
    policy = build(ROOM, ACTIONS[distribution], normalize, distribution=distribution, **SEVERAL, **settings)
    assert_same(policy, rows=37)


@pytest.mark.parametrize("hidden", [(), (1,), (5,), (64, 64), (100, 5, 17)], ids=str)
@pytest.mark.parametrize("inputs", [1, 3, 17, 105, 348])
def test_odd_sizes(inputs: int, hidden: tuple[int, ...]) -> None:
    for outputs in (1, 2, 6, 17):
        action = {"low": -1.0, "high": 1.0, "kind": "box", "shape": (outputs,), "dtype": "float32"}
        policy = build(box(inputs), type(box())(**action), hidden=hidden, encoder="mlp")
        assert_same(policy, rows=13)


@pytest.mark.parametrize("instructions", core().instruction_sets())
@pytest.mark.parametrize(
    ("shape", "layers"),
    [
        ((24, 32), ((16, 32), (4, 3), (2, 2))),
        ((3, 14, 11), ((5, 33, 4), (3, 2, 2), (2, 1, 1))),
        ((9, 8, 2), ((3,), (2,), (3,))),
        ((1, 1), ((2,), (1,), (1,))),
        ((5, 5), ((1, 3), (5, 1), (1, 2))),
    ],
    ids=str,
)
def test_convolutions(shape: tuple[int, ...], layers: tuple[tuple[int, ...], ...], instructions: str) -> None:
    encoder = {"kind": "conv", **dict(zip(("channels", "kernels", "strides"), layers, strict=True)), "features": 9}
    for normalize in (NormalizeConfig(), NORMALIZE):
        lone = build(box(*shape), ACTIONS["gaussian"], normalize, encoder=encoder, hidden=(12,))
        assert_same(lone, rows=51, copy=native(lone, instructions))
        both = build(
            {"depth": box(*shape), "joints": box(3)},
            ACTIONS["categorical"],
            normalize,
            memory="none",
            encoders={"depth": encoder},
            share_trunk=True,
        )
        assert_same(both, rows=7, copy=native(both, instructions))


def test_a_row_of_images_does_not_depend_on_its_neighbors() -> None:
    policy = build(box(13, 9), ACTIONS["gaussian"], NORMALIZE, encoder="conv")
    copy, images = native(policy), leaves_of(observations(policy, 60))[0]
    images[7] = np.nan
    values = copy.value([images])
    alone = [copy.value([images[row : row + 1]])[0] for row in range(60)]
    np.testing.assert_array_equal(values, alone)
    assert np.isnan(values).nonzero()[0].tolist() == [7]


def test_wide_layers_are_summed_in_parts() -> None:
    assert_same(build(box(600), ACTIONS["gaussian"], hidden=(512, 300)), rows=9, terms=4.0)  # they add up to 45


@pytest.mark.parametrize("instructions", core().instruction_sets())
def test_every_number_of_rows(instructions: str) -> None:
    for distribution in ("categorical", "gaussian"):
        policy = build(box(5), ACTIONS[distribution], NORMALIZE, hidden=(24, 33), distribution=distribution)
        copy = native(policy, instructions)
        assert copy.instructions == instructions
        for rows in range(1, 71):
            assert_same(policy, rows, copy=copy)
        assert [len(part) for part in copy.act([np.zeros((0, 5), np.float32)], seed=SEED, step=STEP)] == [0, 0, 0]


@pytest.mark.parametrize("std", ["fixed", "learned", "state"])
@pytest.mark.parametrize("distribution", ["gaussian", "tanh_gaussian"])
@pytest.mark.parametrize("action_bounds", ["clip", "rescale"])
def test_standard_deviations_and_bounds(std: str, distribution: str, action_bounds: str) -> None:
    settings = {"std": std, "action_bounds": action_bounds, "std_floor": 0.05, "log_std": -0.7}
    terms = 4.0 if (distribution, std) == ("tanh_gaussian", "state") else 1.0  # of the log-determinant
    policy = build(box(7), ACTIONS["gaussian"], distribution={"kind": distribution, **settings})
    assert_same(policy, rows=40, terms=terms)


def test_actions_without_bounds_are_left_alone() -> None:
    assert_same(build(box(7), box(4)), rows=5)


@pytest.mark.parametrize(
    ("distribution", "sizes"), [("categorical", (3,)), ("multi_discrete", (2, 5, 3)), ("bernoulli", (1,) * 5)]
)
def test_masks(distribution: str, sizes: tuple[int, ...]) -> None:
    policy = build(box(7), ACTIONS[distribution], distribution=distribution)
    mask = masks(policy, 70, sizes)
    assert_same(policy, 70, mask)
    action, *_ = native(policy).act(leaves_of(observations(policy, 70)), mask.numpy(), seed=SEED, step=STEP)
    if distribution == "bernoulli":
        assert not action[~mask.numpy()].any()
        return
    offsets = np.cumsum(sizes) - sizes
    assert mask.numpy()[np.arange(70)[:, None], offsets + action].all()


@pytest.mark.parametrize("activation", get_args(Activation))
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e4])
def test_extreme_observations(activation: str, scale: float) -> None:
    policy = build(box(6), ACTIONS["categorical"], activation=activation)
    assert_same(policy, 30, scale=scale)


@torch.no_grad()
@pytest.mark.parametrize("activation", get_args(Activation))
def test_the_core_is_as_accurate_as_torch(activation: str) -> None:
    """Both against float64: the core's error is of the size of torch's own."""
    policy = build(box(17), box(6), activation=activation, hidden=(128, 128))
    obs = observations(policy, 300)
    action, log_prob, value = native(policy).act(leaves_of(obs), seed=SEED, step=STEP)
    start, chosen = torch.zeros(300, dtype=torch.bool), torch.from_numpy(action)
    single = policy(obs, (), start)
    exact, prepared = deepcopy(policy).double(), obs.double()
    assert exact.critic_body is not None
    exact_value = exact.critic(exact.critic_body(prepared, (), None).latent)
    distribution = exact.head(exact.actor_body(prepared, (), None).latent)
    for ours, theirs, truth in (
        (torch.from_numpy(value), single.value, exact_value),
        (torch.from_numpy(log_prob), single.distribution.log_prob(chosen), distribution.log_prob(chosen)),
    ):
        assert (ours - truth).square().mean().sqrt() < 2.5 * (theirs - truth).square().mean().sqrt()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_row_that_is_not_finite_stays_alone(bad: float) -> None:
    policy = build(box(6), ACTIONS["categorical"], hidden=(33, 20))
    copy = native(policy)
    obs = observations(policy, 20)
    _, log_prob, value = copy.act(leaves_of(obs), seed=SEED, step=STEP)
    obs[7, 2] = bad
    _, log_prob_beside, value_beside = copy.act(leaves_of(obs), seed=SEED, step=STEP)
    others = np.arange(20) != 7
    np.testing.assert_array_equal(log_prob_beside[others], log_prob[others])
    np.testing.assert_array_equal(value_beside[others], value[others])
    with torch.no_grad():
        expected = policy(obs, (), torch.zeros(20, dtype=torch.bool)).value[7]
    assert_close(np.nan_to_num(value_beside[7], nan=1e9), np.nan_to_num(expected.numpy(), nan=1e9))


@pytest.mark.parametrize("instructions", core().instruction_sets())
@pytest.mark.parametrize("distribution", ACTIONS)
def test_a_row_does_not_depend_on_its_neighbors(distribution: str, instructions: str) -> None:
    policy = build(box(9), ACTIONS[distribution], NORMALIZE, distribution=distribution, hidden=(70, 300, 11))
    copy = native(policy, instructions)
    (obs,) = leaves_of(observations(policy, 70))
    whole = copy.act([obs], seed=SEED, step=STEP)
    for rows in (1, 2, 3, 4, 5, 7, 8, 13, 33, 49):
        for first in {0, 1, 70 - rows}:
            part = slice(first, first + rows)
            alone = copy.act([np.ascontiguousarray(obs[part])], seed=SEED, step=STEP, first_row=first)
            for ours, all_rows in zip(alone, whole, strict=True):
                np.testing.assert_array_equal(ours, all_rows[part])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 33])
def test_uniforms_are_the_learners(count: int) -> None:
    for step, first_row, rows in ((0, 0, 1), (2**32 + 3, 1000, 37), (7, 2**31, 64)):
        ours = core().uniforms(SEED, step, first_row, rows, count, int(Stream.EVALUATION))
        theirs = uniforms(SEED, [step], first_row + np.arange(rows), count, Stream.EVALUATION)[0]
        np.testing.assert_array_equal(ours, theirs)


def test_sync_takes_new_weights_and_names_what_does_not_fit() -> None:
    policy = build(box(4), ACTIONS["categorical"], NORMALIZE)
    copy = native(policy)
    tensors = native_tensors(policy)
    obs = leaves_of(observations(policy, 5))
    before = copy.value(obs)
    wrong = dict(tensors)
    del wrong["head.logits.bias"]
    wrong["critic.head.weight"] = np.zeros((1, 63), np.float32)
    wrong["actor_body.trunk.layers.3.weight"] = np.zeros((64, 64), np.float32)
    with pytest.raises(ValueError) as caught:
        copy.sync(wrong | {"critic_body.trunk.layers.0.weight": tensors["critic_body.trunk.layers.0.weight"] * 2})
    for name in (
        "missing head.logits.bias",
        "critic.head.weight has shape [1, 63]",
        "unknown actor_body.trunk.layers.3",
    ):
        assert name in str(caught.value)
    np.testing.assert_array_equal(copy.value(obs), before)
    with torch.no_grad():
        policy.critic.get_parameter("head.bias").add_(1)  # the tensors are views: the learner's new weights are in them
    copy.sync(tensors)
    assert not np.array_equal(copy.value(obs), before)
    assert_same(policy, 5, copy=copy)


def test_arguments_are_checked_by_name() -> None:
    policy = build(box(4), ACTIONS["categorical"])
    copy = native(policy)
    obs = np.zeros((3, 4), np.float32)
    with pytest.raises(TypeError, match=r"obs\[0\].*float32"):
        copy.value([obs.astype(np.float64)])
    with pytest.raises(ValueError, match=r"obs\[0\].*\[3, 4\]"):
        copy.value([np.zeros((3, 5), np.float32)])
    with pytest.raises(ValueError, match="obs must be 1 arrays"):
        copy.value([obs, obs])
    with pytest.raises(ValueError, match="mask"):
        copy.act([obs], np.ones((3, 2), bool), seed=0, step=0)
    with pytest.raises(TypeError, match=r"tensor head.logits.bias"):
        copy.sync(native_tensors(policy) | {"head.logits.bias": np.zeros(3)})
    with pytest.raises(ValueError, match=r"instructions.*'abacus'"):
        native(policy, "abacus")
