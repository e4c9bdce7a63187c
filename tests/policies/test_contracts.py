"""What every encoder, distribution and critic must do; a new file in the folder is tested here with no other edit."""

import pytest
import torch
from torch import Tensor, nn

from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.policies.critics import ValueTargets, critics
from surefoot.policies.distributions import DistributionHead, distributions
from surefoot.policies.encoders import encoders
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.parts import settings_class

LATENT, BATCH = 8, 5
VECTOR = ArraySpec("box", (6,), "float32")
IMAGE = ArraySpec("image", (12, 12, 3), "float32")
OBSERVATIONS: list[ObsSpec] = [VECTOR, ArraySpec("box", (4, 3), "float32"), IMAGE, {"vector": VECTOR, "image": IMAGE}]
ACTIONS = [
    ArraySpec("box", (3,), "float32", low=-2.0, high=(1.0, 2.0, 3.0)),
    ArraySpec("box", (2, 2), "float32", low=-1.0, high=1.0),
    ArraySpec("discrete", (), "int64", sizes=(4,), start=(10,)),
    ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 5, 3), start=(0, 1, 2)),
    ArraySpec("multi_binary", (4,), "float32"),
]


def fitting_heads() -> list[tuple[str, ArraySpec]]:
    """Every registered distribution with every action space that it accepts."""
    pairs = []
    for name in distributions.names():
        accepted = [spec for spec in ACTIONS if _accepts(name, spec)]
        assert accepted, f"{name} accepts none of the usual action spaces"
        pairs += [(name, spec) for spec in accepted]
    return pairs


def _accepts(name: str, spec: ArraySpec) -> bool:
    try:
        distributions[name](LATENT, spec, PolicyConfig())
    except Exception:
        return False
    return True


@pytest.mark.parametrize(("name", "spec"), fitting_heads(), ids=lambda value: getattr(value, "kind", value))
class TestDistribution:
    def head(self, name: str, spec: ArraySpec) -> DistributionHead:
        torch.manual_seed(0)
        return distributions[name](LATENT, spec, PolicyConfig())

    def test_shapes_and_range(self, name: str, spec: ArraySpec) -> None:
        head = self.head(name, spec)
        distribution = head(torch.randn(BATCH, LATENT))
        noise = head.noise(torch.rand(BATCH, head.noise_size))
        for action in (distribution.sample(noise), distribution.mode()):
            assert action.shape == (BATCH, *head.action_shape)
            assert action.dtype == head.action_dtype
            assert distribution.log_prob(action).shape == (BATCH,)
            assert torch.isfinite(distribution.log_prob(action)).all()
            for_env = head.to_env(action)
            assert for_env.shape == (BATCH, *spec.shape)
            if spec.kind == "box":
                low, high = (torch.as_tensor(bound) for bound in spec.bounds())
                assert (for_env >= low).all()
                assert (for_env <= high).all()
            if spec.sizes:
                start, sizes = torch.tensor(spec.start), torch.tensor(spec.sizes)
                categories = for_env.view(BATCH, -1) - start
                assert ((categories >= 0) & (categories < sizes)).all()
        assert distribution.entropy().shape == (BATCH,)

    def test_gradients_reach_every_parameter(self, name: str, spec: ArraySpec) -> None:
        head = self.head(name, spec)
        latent = torch.randn(BATCH, LATENT, requires_grad=True)
        distribution = head(latent)
        action = distribution.sample(head.noise(torch.rand(BATCH, head.noise_size))).detach()
        (distribution.log_prob(action).sum() + distribution.entropy().sum()).backward()
        gradients = [parameter.grad for parameter in head.parameters() if parameter.requires_grad]
        assert all(gradient is not None and torch.isfinite(gradient).all() for gradient in gradients)
        assert latent.grad is not None
        assert latent.grad.abs().sum() > 0

    def test_same_noise_same_action(self, name: str, spec: ArraySpec) -> None:
        head = self.head(name, spec)
        latent, noise = torch.randn(BATCH, LATENT), torch.rand(BATCH, head.noise_size)
        first, second = (head(latent).sample(head.noise(noise)) for _ in range(2))
        assert torch.equal(first, second)

    def test_state_round_trip(self, name: str, spec: ArraySpec) -> None:
        head, other = self.head(name, spec), distributions[name](LATENT, spec, PolicyConfig())
        other.load_state_dict(head.state_dict())
        latent = torch.randn(BATCH, LATENT)
        assert torch.equal(head(latent).mode(), other(latent).mode())


@pytest.mark.parametrize("name", sorted({*encoders.names()} - {"none"}))
def test_encoder(name: str) -> None:
    config, policy = settings_class("surefoot.policies.encoders", name)(kind=name), PolicyConfig()
    fitting = []
    for spec in OBSERVATIONS:
        try:
            fitting.append((spec, encoders[name](spec, config, policy)))
        except Exception:
            continue
    assert fitting, f"{name} takes none of the usual observations"
    for spec, encoder in fitting:
        obs = random_obs(spec)
        features = encoder(obs)
        assert features.shape == (BATCH, encoder.output_size)
        assert torch.equal(features, encoder(obs))
        if list(encoder.parameters()):
            features.sum().backward()
            assert all(parameter.grad is not None for parameter in encoder.parameters())
        other = encoders[name](spec, config, policy)
        other.load_state_dict(encoder.state_dict())
        assert torch.equal(other(obs), encoder(obs))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("name", critics.names())
def test_critic(name: str, normalized: bool) -> None:
    torch.manual_seed(0)
    build = lambda: critics[name](LATENT, PolicyConfig(critic=name), NormalizeConfig(returns=normalized))  # noqa: E731
    critic = build()
    latent = torch.randn(BATCH, LATENT)
    before = critic.value(critic(latent)).detach()
    assert before.shape == (BATCH,)
    critic.absorb(torch.randn(100) * 50 + 300)
    assert torch.allclose(critic.value(critic(latent)), before, atol=1e-3), "statistics moved the predictions"
    old = critic.decode(critic(latent)).detach()
    loss = critic.loss(critic(latent), ValueTargets(torch.randn(BATCH), before, 0.2, old))
    assert loss.shape == ()
    loss.backward()
    assert all(parameter.grad is not None for parameter in critic.parameters())
    other = build()
    other.load_state_dict(critic.state_dict())
    assert torch.equal(other.value(other(latent)), critic.value(critic(latent)))


@pytest.mark.parametrize("name", critics.names())
def test_critic_learns_its_targets(name: str) -> None:
    torch.manual_seed(0)
    critic = critics[name](LATENT, PolicyConfig(critic=name), NormalizeConfig(returns=True))
    latent = torch.randn(256, LATENT)
    returns = 100 + 20 * latent[:, 0]
    critic.absorb(returns)
    optimizer = torch.optim.Adam(critic.parameters(), 0.05)
    for _ in range(300):
        optimizer.zero_grad()
        prediction = critic(latent)
        critic.loss(prediction, ValueTargets(returns, returns, None, prediction.detach())).backward()
        optimizer.step()
    assert (critic.value(critic(latent)) - returns).abs().mean() < 3


def random_obs(spec: ObsSpec) -> Tensor | dict[str, Tensor]:
    if isinstance(spec, dict):
        return {key: torch.rand(BATCH, *part.shape) for key, part in spec.items()}
    return torch.rand(BATCH, *spec.shape)


def test_every_kind_is_a_module() -> None:
    for registry in (encoders, distributions, critics):
        assert all(issubclass(registry[name], nn.Module) for name in registry.names())
