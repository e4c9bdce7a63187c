"""The native learner does what the readable one does: every kind of policy, objective and optimizer."""

import logging
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot import PPO
from surefoot.data.records import Knobs
from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_map
from surefoot.errors import ConfigError, PolicyError
from surefoot.learning.learner import Learner
from surefoot.learning.native_learner import NativeLearner, native_samples
from surefoot.learning.terms import Minibatch, Term, TermLoss
from surefoot.learning.transforms import GradientTransform, Layout
from surefoot.native.kernels import kernel_threads
from surefoot.policies.native_plan import native_tensors
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import samples_of
from surefoot.settings.config import PPOConfig
from surefoot.settings.parts import PartSettings
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, Side, both, config_of, knobs_of

HERE = "tests.learning.test_native_learner"
TWO_PARTS = {"eyes": ArraySpec("box", (4,), "float32"), "legs": ArraySpec("box", (3, 2), "float32")}
MANY_CHOICES = ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 4, 3), start=(0, 1, 0))
SWITCHES = ArraySpec("multi_binary", (4,), "int64")
GRU = {"kind": "gru", "hidden_size": 9}
LSTM = {"kind": "lstm", "hidden_size": 8}
BRANCH = {"policy.share_memory": True}
TOLERANCE = 2e-5

POLICIES: dict[str, tuple[Any, ...]] = {
    "separate": (SEVEN, THREE_ACTIONS, {}),
    "shared": (SEVEN, CHOICES, {"policy.share_trunk": True}),
    "without layers": (SEVEN, THREE_ACTIONS, {"policy.hidden": ()}),
    "seven layers": (SEVEN, CHOICES, {"policy.hidden": (5, 33, 1, 40, 7, 64, 3), "policy.activation": "elu"}),
    "one hidden unit": (ArraySpec("box", (1,), "float32"), CHOICES, {"policy.hidden": (1,)}),
    "wide": (SEVEN, THREE_ACTIONS, {"policy.hidden": (300, 70), "policy.activation": "relu"}),
    "larger critic": (SEVEN, THREE_ACTIONS, {"policy.hidden": (17, 9), "policy.critic_hidden": (33, 12, 8)}),
    "mlp encoder": (SEVEN, CHOICES, {"policy.encoder": {"kind": "mlp", "layers": (11,)}}),
    "dict": (TWO_PARTS, THREE_ACTIONS, {"policy.encoders": {"eyes": {"kind": "mlp", "layers": (6, 5)}}}),
    "dict, shared": (TWO_PARTS, CHOICES, {"policy.share_trunk": True, "policy.encoders": {"legs": "mlp"}}),
    "asymmetric": (TWO_PARTS, THREE_ACTIONS, {"policy.critic_obs": ("legs",), "policy.encoders": {"legs": "mlp"}}),
    "silu": (SEVEN, CHOICES, {"policy.activation": "silu"}),
    "gelu": (SEVEN, CHOICES, {"policy.activation": "gelu"}),
    "leaky relu": (SEVEN, CHOICES, {"policy.activation": "leaky_relu"}),
    "tanh gaussian": (SEVEN, THREE_ACTIONS, {"policy.distribution": "tanh_gaussian"}),
    "beta": (SEVEN, THREE_ACTIONS, {"policy.distribution": "beta"}),
    "std of the state": (SEVEN, THREE_ACTIONS, {"policy.distribution": {"kind": "gaussian", "std": "state"}}),
    "fixed std": (SEVEN, THREE_ACTIONS, {"policy.distribution": {"kind": "gaussian", "std": "fixed"}}),
    "several choices": (SEVEN, MANY_CHOICES, {}),
    "switches": (SEVEN, SWITCHES, {}),
    "gru": (SEVEN, CHOICES, {"policy.memory": GRU}),
    "lstm": (SEVEN, THREE_ACTIONS, {"policy.memory": LSTM}),
    "two layers of gru, shared": (
        TWO_PARTS,
        CHOICES,
        {"policy.memory": GRU | {"layers": 2}, "policy.share_trunk": True, "policy.encoders": {"eyes": "mlp"}},
    ),
    "one lstm each": (SEVEN, CHOICES, {"policy.memory": LSTM | {"layers": 2}, "policy.share_memory": False}),
    "branch": (
        TWO_PARTS,
        CHOICES,
        BRANCH | {"policy.memory": LSTM, "policy.critic_obs": ("legs",), "policy.hidden": ()},
    ),
    "branch with encoders": (
        TWO_PARTS,
        CHOICES,
        BRANCH
        | {"policy.memory": GRU, "policy.critic_obs": ("legs",), "policy.encoders": {"legs": "mlp", "eyes": "mlp"}},
    ),
    "branch of the memory alone": (SEVEN, CHOICES, BRANCH | {"policy.memory": GRU}),
    "branch of one layer": (SEVEN, CHOICES, BRANCH | {"policy.memory": GRU, "policy.critic_hidden": (21,)}),
}
QUANTILES = {"kind": "quantile", "num_quantiles": 7}
TWIN = {"kind": "twin", "of": QUANTILES}
CRITICS: dict[str, dict[str, Any]] = {
    "quantiles": {"policy.critic": QUANTILES},
    "quantiles, each clipped": {"policy.critic": QUANTILES, "ppo.clip_value": 0.2, "normalize.returns": True},
    "quantiles, mean clipped": {"policy.critic": QUANTILES | {"clip": "mean", "kappa": 0.3}, "ppo.clip_value": 0.1},
    "quantiles, mean and spread clipped": {
        "policy.critic": QUANTILES | {"clip": "mean_and_spread", "kappa": 0.0},
        "ppo.clip_value": 0.1,
    },
    "twin": {"policy.critic": "twin", "ppo.clip_value": 0.2, "ppo.micro_batch_size": 13},
    "twin, without layers": {"policy.critic": TWIN, "policy.hidden": ()},
    "twin quantiles": {"policy.critic": TWIN, "ppo.clip_value": 0.2, "normalize.returns": True},
    "twin quantiles over the actor's trunk": {"policy.critic": TWIN, "policy.share_trunk": True},
    "twin with a memory": {
        "policy.critic": TWIN,
        "policy.memory": LSTM,
        "normalize.returns": True,
        "normalize.return_stats": "previous",
    },
    "twin of other sizes": {"policy.critic": TWIN, "policy.critic_hidden": (19, 5, 12)},
    "twin branch": {"policy.critic": TWIN, "policy.memory": GRU, **BRANCH},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "one epoch, one minibatch": {"ppo.epochs": 1, "ppo.batch_size": 144},
    "single samples": {"ppo.epochs": 1, "ppo.batch_size": 1, "ppo.advantage_norm": "rollout"},
    "micro-batches": {"ppo.micro_batch_size": 13},
    "value clip": {"ppo.clip_value": 0.2},
    "returns normalized before": {"normalize.returns": True, "normalize.return_stats": "current"},
    "returns normalized after": {
        "normalize.returns": True,
        "normalize.return_stats": "previous",
        "ppo.clip_value": 0.1,
    },
    "observations normalized": {"normalize.obs": True, "normalize.obs_clip": 1.5},
    "no norm of advantages": {"ppo.advantage_norm": "none"},
    "no clip of gradients": {"ppo.max_grad_norm": None},
    "adamw": {"optimizer.algorithm": "adamw", "optimizer.weight_decay": 0.1},
    "weight decay": {"optimizer.weight_decay": 0.1, "optimizer.betas": (0.8, 0.95), "optimizer.adam_eps": 1e-3},
    "no entropy": {"ppo.entropy_coef": 0.0},
}
MEMORIES: dict[str, dict[str, Any]] = {
    "stored": {},
    "recomputed": {"ppo.sequence_state": "recomputed"},
    "burn-in": {"ppo.burn_in": 3},
    "micro-batches": {"ppo.micro_batch_size": 11},
}


def learn_apart(native: Side, readable: Side, rollout: Any, targets: Any, knobs: Knobs) -> float:
    """Learn on both sides; returns the largest difference of weights as a share of the largest weight."""
    native.policy.absorb(tree_map(lambda leaf: leaf.flatten(0, 1), rollout.obs))
    readable.policy.load_state_dict(native.policy.state_dict())
    ours, reference = (side.learn(rollout, targets, knobs) for side in (native, readable))
    assert ours.epochs == reference.epochs
    assert ours.skips == reference.skips
    assert ours.metrics == pytest.approx(reference.metrics, rel=2e-4, abs=2e-6)
    for name in (
        "policy_loss",
        "value_loss",
        "entropy",
        "approx_kl",
        "clip_fraction",
        "grad_norm",
        "explained_variance",
    ):
        assert getattr(ours, name) == pytest.approx(getattr(reference, name), rel=2e-4, abs=2e-6), name
    assert ours.std == (None if reference.std is None else pytest.approx(reference.std, rel=1e-5))
    return max(
        float((one - two).abs().max()) / max(1.0, float(two.abs().max()))
        for one, two in zip(native.weights().values(), readable.weights().values(), strict=True)
    )


def assert_alike(*given: Any, made: dict[str, Any] | None = None, updates: int = 2, **settings: Any) -> None:
    native, readable, *learned = both(*given, made=made, **settings)
    assert type(native.learner) is NativeLearner
    assert type(readable.learner) is Learner
    knobs = knobs_of(config_of("torch", **settings))
    for _ in range(updates):  # the second begins with moments and a count
        assert learn_apart(native, readable, *learned, knobs) < TOLERANCE
    assert native.gradient.count == readable.gradient.count > 0


@pytest.mark.parametrize("kind", POLICIES)
def test_every_policy_that_the_core_knows(kind: str):
    obs, action, settings = POLICIES[kind]
    assert_alike(obs, action, **settings)


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_setting(kind: str):
    assert_alike(SEVEN, THREE_ACTIONS, **SETTINGS[kind])


@pytest.mark.parametrize("kind", CRITICS)
def test_every_critic(kind: str):
    assert_alike(SEVEN, CHOICES, made={"share_valid": 0.9}, **CRITICS[kind])


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize("memory", [GRU, LSTM | {"layers": 2}], ids=["gru", "lstm"])
def test_every_way_to_begin_a_sequence(kind: str, memory: dict[str, Any]):
    made = {"share_valid": 0.9, "burn_in": MEMORIES[kind].get("ppo.burn_in", 0)}
    assert_alike(SEVEN, CHOICES, made=made, **{"policy.memory": memory, **MEMORIES[kind]})


@pytest.mark.parametrize("action", [CHOICES, MANY_CHOICES, SWITCHES], ids=lambda spec: spec.kind)
def test_masked_actions_and_invalid_steps(action: ArraySpec):
    assert_alike(SEVEN, action, made={"masked": True, "share_valid": 0.8})


def test_minibatches_with_a_remainder():
    assert_alike(SEVEN, CHOICES, made={"share_valid": 0.7})  # the last minibatch is smaller


def test_the_shuffles_are_those_of_the_reference():
    """With one sample a minibatch, the order of the samples decides the weights."""
    weights = []
    for update in (2**32 + 5, 1):
        native, readable, *learned = both(SEVEN, CHOICES, **SETTINGS["single samples"])
        native.learner.update = readable.learner.update = update
        assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE
        weights.append(native.weights()["critic.head.weight"])
    assert not torch.equal(*weights)


def test_the_kl_divergence_stops_both_in_the_same_epoch():
    native, readable, *learned = both(SEVEN, CHOICES, **{"ppo.target_kl": 0.02, "ppo.epochs": 9})
    knobs = Knobs(knobs_of(config_of("torch")), lr=0.02)
    learn_apart(native, readable, *learned, knobs)
    assert native.gradient.count < 9 * 3


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_weights_are_the_same_bits_for_any_number_of_threads(memory: str):
    settings = {"policy.hidden": (130, 64), "policy.memory": memory, "ppo.batch_size": 72}
    weights = []
    for threads in (1, 2, 3, 7):
        side, _, *learned = both(SEVEN, THREE_ACTIONS, **settings, **{"train.threads": threads})
        side.learn(*learned, knobs_of(config_of("torch")))
        weights.append(torch.cat([value.flatten().double() for value in side.weights().values()]))
    for others in weights[1:]:
        assert torch.equal(weights[0], others)


def test_a_gradient_that_is_not_finite_changes_nothing():
    native, _readable, rollout, targets = both(SEVEN, CHOICES, **{"ppo.batch_size": 144, "ppo.epochs": 1})
    targets.returns[3, 2] = math.nan
    before = native.weights()
    learned = native.learn(rollout, targets, knobs_of(config_of("torch")))
    assert learned.skips == (True,)
    assert math.isnan(learned.value_loss)
    assert native.gradient.count == 0
    assert native.gradient.state()["adam"] == {}
    assert all(torch.equal(value, before[name]) for name, value in native.weights().items())


class Half(GradientTransform):
    """Half of every gradient; counts its calls."""

    class Settings(PartSettings):
        """None."""

    def __init__(self, settings: Settings, name: str, layout: Layout) -> None:
        super().__init__(settings, name, layout)
        self.calls = 0

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        self.calls += 1
        return 0.5 * gradient

    def metrics(self) -> dict[str, Tensor]:
        return {"calls": torch.tensor(float(self.calls))}


class Plain(Half):
    """Without metrics."""

    def metrics(self) -> dict[str, Tensor]:
        return {}


class Broken(Half):
    """Raises in its third call."""

    def apply(self, gradient: Tensor, knobs: Knobs) -> Tensor:
        if self.calls == 2:
            raise RuntimeError("broken on purpose")
        return super().apply(gradient, knobs)


def test_transforms_of_ones_own_see_every_gradient():
    transforms = {"half": {"kind": f"{HERE}:Half"}}
    native, readable, *learned = both(SEVEN, CHOICES, **{"optimizer.transforms": transforms, "train.threads": 2})
    assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE
    assert [side.gradient.transforms["half"].calls for side in (native, readable)] == [6, 6]


def test_a_transform_need_not_have_metrics():
    native, readable, *learned = both(SEVEN, CHOICES, **{"optimizer.transforms": {"plain": {"kind": f"{HERE}:Plain"}}})
    assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE


def test_norms_are_right_with_and_without_transforms_in_turn():
    native, readable, *learned = both(SEVEN, CHOICES, **{"policy.hidden": (130, 130)})
    for is_halved in (False, True, False):
        for side in (native, readable):
            half = Half(Half.Settings(kind="half"), "half", {})
            side.gradient.transforms = {"half": half} if is_halved else {}
        assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE


PARTS: dict[str, set[str]] = {
    "separate": {"actor", "critic"},
    "dict, shared": {"encoder", "trunk", "actor", "critic"},
    "branch with encoders": {"encoder", "memory", "actor", "critic_encoder", "critic"},
    "one lstm each": {"memory", "actor", "critic_memory", "critic"},
}


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("transforms", [{}, {"half": {"kind": f"{HERE}:Half"}}], ids=["plain", "transformed"])
def test_norms_of_all_parts_make_up_the_norm_of_the_gradient(kind: str, transforms: dict[str, Any]):
    obs, action, settings = POLICIES[kind]
    whole = {"ppo.epochs": 1, "ppo.batch_size": 144, "optimizer.transforms": transforms}
    for side in both(obs, action, **settings, **whole)[:2]:
        learned = side.learn(*both(obs, action, **settings, **whole)[2:], knobs_of(config_of("torch")))
        norms = {name: norm for name, norm in learned.metrics.items() if name.endswith("_grad_norm")}
        assert set(norms) == {f"train/{part}_grad_norm" for part in PARTS[kind]}
        assert all(norm > 0 for norm in norms.values())
        assert math.hypot(*norms.values()) == pytest.approx(learned.grad_norm, rel=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_transform_raises_comes_out(threads: int):
    transforms = {"broken": {"kind": f"{HERE}:Broken"}}
    settings = {"optimizer.transforms": transforms, "train.threads": threads, "policy.hidden": (256, 256)}
    native, _, *learned = both(SEVEN, CHOICES, **settings)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        native.learn(*learned, knobs_of(config_of("torch")))


class Own(Term):
    """A term that only PyTorch knows."""

    class Settings(PartSettings):
        """None."""

    def __init__(self, settings: Settings, name: str, ppo: PPOConfig) -> None:
        super().__init__(settings, name, ppo)

    def loss(self, minibatch: Minibatch) -> TermLoss:
        return TermLoss(minibatch.output.value.square().mean())


def small(**settings: Any) -> PPO:
    named = {"rollout.num_envs": 4, "rollout.num_steps": 16, "ppo.batch_size": 32, "log.console": "off", **settings}
    return PPO("CartPole-v1", **named)


def test_what_the_core_does_not_know_is_learned_in_pytorch_with_the_reason(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="surefoot"):
        small(**{"ppo.terms": {"own": {"kind": f"{HERE}:Own"}}}).learn(64)
    assert any("learning: PyTorch (the term Own has no native implementation)" in line for line in caplog.messages)


@pytest.mark.parametrize("engine", ["native", "local", "processes"])
def test_every_engine_has_the_native_learner(engine: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="surefoot"):
        small(**{"rollout.engine": engine}).learn(64)
    assert any(line.startswith("learning: native") for line in caplog.messages)


def test_a_learner_that_cannot_be_native_is_refused():
    with pytest.raises(ConfigError, match=r"train\.learner: cannot be native: the term Own has no native"):
        small(**{"ppo.terms": {"own": {"kind": f"{HERE}:Own"}}, "train.learner": "native"}).learn(64)


def test_a_policy_that_changed_is_refused():
    native, _, *learned = both(SEVEN, CHOICES)
    native.policy.actor_body.trunk.register_forward_hook(lambda *_: None)
    with pytest.raises(PolicyError, match=r"set train\.learner to torch"):
        native.learn(*learned, knobs_of(config_of("torch")))


def test_settings_of_a_part_may_change_between_updates():
    native, readable, *learned = both(SEVEN, THREE_ACTIONS)
    for floor in (1e-3, 0.5):
        native.policy.head.std_floor = readable.policy.head.std_floor = floor
        assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE


def test_frozen_parameters_keep_their_values():
    def freeze(policy: Policy) -> None:
        policy.actor_body.trunk.layers[0].weight.requires_grad_(False)

    native, readable, *learned = both(SEVEN, CHOICES, prepare=freeze)
    name = "actor_body.trunk.layers.0.weight"
    before = native.weights()[name]
    assert learn_apart(native, readable, *learned, knobs_of(config_of("torch"))) < TOLERANCE
    assert torch.equal(native.weights()[name], before)


def test_the_core_names_what_is_missing():
    """The binding is the border: nothing below it checks again."""
    native, _, *learned = both(SEVEN, CHOICES, **{"policy.memory": GRU})
    samples = native_samples(samples_of(*learned, config_of("torch").ppo), native.policy.preprocess)
    good = native.learner._settings(knobs_of(config_of("torch"))) | {"num_valid": 144}
    memory, tensors = native.gradient.native_memory(), native_tensors(native.policy)

    def refused(message: str, samples: dict[str, Any] = samples, settings: dict[str, Any] = good) -> None:
        with pytest.raises((ValueError, TypeError), match=message):
            native.learner._core.learn(samples, settings, tensors, memory, kernel_threads())

    refused("sequences", {name: value for name, value in samples.items() if name != "sequences"})
    refused("value must have shape", samples | {"value": samples["value"][1:].copy()})
    refused("lr is missing", settings={name: value for name, value in good.items() if name != "lr"})
    refused("weights must have one number per term", settings=good | {"weights": [1.0]})
    refused("batch_size must be positive", settings=good | {"batch_size": 0})
    runs = dict(samples["sequences"], first=samples["sequences"]["first"] + 1000)
    refused("first has a number out of range", samples | {"sequences": runs})
