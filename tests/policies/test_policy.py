"""The actor-critic as a whole: what it is built from and what it refuses."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.envs.protocol.spaces import array_spec
from surefoot.errors import ConfigError, PolicyError
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.distributions import build_head
from surefoot.settings.config import NormalizeConfig
from surefoot.settings.layers import build_config

SCALAR = ArraySpec("box", (), "float32")
VECTOR = ArraySpec("box", (3,), "float32")
MOVES = ArraySpec("box", (6,), "float32", low=-1.0, high=1.0)
CHOICE = ArraySpec("discrete", (), "int64", sizes=(3,), start=(0,))


def build(obs: ObsSpec, action: ArraySpec = CHOICE, **settings: object) -> ActorCritic:
    return ActorCritic(obs, action, build_config({"policy": settings}).policy, NormalizeConfig())


def outputs(policy: ActorCritic, obs: object) -> tuple[torch.Tensor, torch.Tensor]:
    output = policy(obs, (), torch.zeros(4, dtype=torch.bool))
    return output.distribution.mode(), output.value


@pytest.mark.parametrize("encoder", ["identity", "mlp"])
def test_scalar_observations(encoder: str) -> None:
    _, value = outputs(build(SCALAR, encoder=encoder), torch.randn(4))
    assert value.shape == (4,)


def test_only_the_critic_sees_critic_obs() -> None:
    policy = build({"seen": VECTOR, "hidden": VECTOR}, MOVES, critic_obs=("hidden",))
    seen = torch.randn(4, 3)
    first = outputs(policy, {"seen": seen, "hidden": torch.randn(4, 3)})
    second = outputs(policy, {"seen": seen, "hidden": torch.randn(4, 3)})
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])


@pytest.mark.parametrize(
    ("obs", "settings", "names"),
    [
        (VECTOR, {"critic_obs": ("a",)}, "requires a dict observation"),
        ({"a": VECTOR, "b": VECTOR}, {"critic_obs": ("aa",)}, "did you mean 'a'"),
        ({"a": VECTOR, "b": VECTOR}, {"critic_obs": ("a",), "share_trunk": True}, "share_trunk"),
        ({"a": VECTOR}, {"critic_obs": ("a",)}, "leaves no observation for the actor"),
        (VECTOR, {"critic_hidden": (8,), "share_trunk": True}, "policy.critic_hidden: set policy.share_trunk to false"),
        ({"depth": VECTOR}, {"encoders": {"depht": "mlp"}}, "did you mean 'depth'"),
        (VECTOR, {"encoder": "mpl"}, "did you mean 'mlp'"),
        (VECTOR, {"distribution": "categorica"}, "did you mean 'categorical'"),
        (VECTOR, {"critic": "scaler"}, "did you mean 'scalar'"),
    ],
)
def test_what_does_not_fit_is_named(obs: ObsSpec, settings: dict[str, object], names: str) -> None:
    with pytest.raises(ConfigError, match=names):
        build(obs, **settings)


def test_distributions_refuse_other_action_spaces() -> None:
    unbounded = ArraySpec("box", (2,), "float32")
    for distribution, spec in [
        ("beta", unbounded),
        ("tanh_gaussian", unbounded),
        ("gaussian", CHOICE),
        ("bernoulli", MOVES),
    ]:
        with pytest.raises(PolicyError, match=r"policy\.distribution"):
            build(VECTOR, spec, distribution=distribution)


def test_initial_std_by_groups() -> None:
    policy = build(VECTOR, MOVES, distribution={"log_std": -1.0, "log_std_groups": {"0:2": 0.5, "5:6": -2.0}})
    std = policy(torch.zeros(1, 3), (), torch.zeros(1, dtype=torch.bool)).distribution.std
    assert torch.allclose(std.log(), torch.tensor([0.5, 0.5, -1.0, -1.0, -1.0, -2.0]), atol=1e-5)


def test_group_past_the_action_is_refused() -> None:
    with pytest.raises(ConfigError, match="exceeds the"):
        build(VECTOR, MOVES, distribution={"log_std_groups": {"4:7": 0.0}})


def test_std_has_a_floor_and_its_gradient_lives_there() -> None:
    policy = build(VECTOR, MOVES, distribution={"std_floor": 0.05})
    with torch.no_grad():
        policy.head.log_std.fill_(-4.0)
    distribution = policy(torch.zeros(1, 3), (), torch.zeros(1, dtype=torch.bool)).distribution
    assert (distribution.std > 0.05).all()
    distribution.entropy().sum().backward()
    assert (policy.head.log_std.grad > 0).all()


@pytest.mark.parametrize("std", ["fixed", "learned", "state"])
def test_kinds_of_std(std: str) -> None:
    policy = build(VECTOR, MOVES, distribution={"std": std, "log_std": -0.7})
    distribution = policy(torch.randn(4, 3), (), torch.zeros(4, dtype=torch.bool)).distribution
    assert torch.allclose(distribution.std.log(), torch.tensor(-0.7), atol=0.05)
    assert policy.head.log_std.requires_grad == (std == "learned")
    assert (distribution.std.dim() == 2) == (std == "state")


def test_shared_trunk_has_fewer_parameters() -> None:
    shared, separate = build(VECTOR, share_trunk=True), build(VECTOR)
    assert shared.critic_body is None
    count = lambda module: sum(p.numel() for p in module.parameters())  # noqa: E731
    assert count(shared) < count(separate)


def test_bfloat16_heads_stay_float32() -> None:
    policy = build(VECTOR, MOVES, precision="bfloat16")
    output = policy(torch.randn(4, 3), (), torch.zeros(4, dtype=torch.bool))
    assert output.value.dtype == output.distribution.mean.dtype == torch.float32
    exact = build(VECTOR, MOVES)
    exact.load_state_dict(policy.state_dict())
    obs = torch.randn(64, 3)
    start = torch.zeros(64, dtype=torch.bool)
    difference = (policy(obs, (), start).value - exact(obs, (), start).value).abs().max()
    assert 0 < difference < 0.1


@pytest.mark.parametrize(
    ("space", "kind", "advice"),
    [
        (
            spaces.Discrete(2),
            "beta",
            "a bounded Box action space, but this one is Discrete; set it to categorical or auto",
        ),
        (spaces.Discrete(2), "tanh_gaussian", "but this one is Discrete; set it to categorical or auto"),
        (spaces.Box(-1, 1, (2,)), "categorical", "is Box; set it to gaussian, tanh_gaussian, beta or auto"),
        (spaces.Box(-np.inf, 1, (2,)), "beta", "is Box without finite bounds; set it to gaussian or auto"),
        (spaces.MultiBinary(3), "gaussian", "is MultiBinary; set it to bernoulli or auto"),
        (spaces.MultiDiscrete([3, 2]), "bernoulli", "is MultiDiscrete; set it to multi_discrete or auto"),
    ],
)
def test_a_distribution_that_does_not_fit_names_those_that_do(space, kind, advice):
    with pytest.raises(PolicyError, match=rf"^policy\.distribution: {kind} requires .*{advice}$"):
        build_head(4, array_spec(space, "action"), build_config({"policy.distribution": kind}).policy)
