import pytest
import torch

from surefoot.data.specs import ArraySpec
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.critics import ValueTargets, critics
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.preprocess import Preprocess
from surefoot.settings.config import NormalizeConfig, PolicyConfig


def test_before_anything_is_absorbed_values_pass_as_they_are():
    normalizer = RunningNormalizer((2,), clip=10.0)
    values = torch.tensor([[1.5, -3.0]])
    assert torch.equal(normalizer(values), values)


def test_absorbing_nothing_changes_nothing():
    normalizer = RunningNormalizer((2,))
    normalizer.absorb(torch.zeros(0, 2))
    assert torch.equal(normalizer(torch.ones(1, 2)), torch.ones(1, 2))


def test_a_loaded_normalizer_works_as_the_saved_one():
    trained, loaded = RunningNormalizer((2,)), RunningNormalizer((2,))
    trained.absorb(torch.tensor([[1.0, 10.0], [3.0, 50.0]]))
    loaded.load_state_dict(trained.state_dict())
    values = torch.tensor([[2.5, -7.0]])
    assert torch.equal(loaded(values), trained(values))


def test_loading_a_fresh_state_resets_a_used_normalizer():
    used = RunningNormalizer((2,))
    used.absorb(torch.tensor([[1.0, 10.0], [3.0, 50.0]]))
    used.load_state_dict(RunningNormalizer((2,)).state_dict())
    assert torch.equal(used(torch.ones(1, 2)), torch.ones(1, 2))


def test_constant_observations_are_centered_and_do_not_blow_up():
    normalizer = RunningNormalizer((1,), clip=10.0)
    normalizer.absorb(torch.full((100, 1), 0.7))
    assert normalizer(torch.tensor([[0.7]])).abs().item() < 1e-2


@pytest.mark.parametrize("key", ["type", "keys", "values", "training", "forward", "a.b", "arm/joint", "obs"])
def test_observations_may_have_any_name(key):
    spec = {key: ArraySpec("box", (2,), "float32"), "other": ArraySpec("discrete", (), "int64", sizes=(3,))}
    policy = ActorCritic(spec, ArraySpec("box", (1,), "float32"), PolicyConfig(hidden=(4,)), NormalizeConfig(obs=True))
    obs = {key: torch.randn(50, 2, generator=torch.Generator().manual_seed(0)), "other": torch.zeros(50).long()}
    policy.absorb_obs(obs)
    prepared = policy.preprocess(obs)
    torch.testing.assert_close(prepared[key].mean(0), torch.zeros(2), rtol=0, atol=1e-5)
    assert prepared["other"].shape == (50, 3)


def test_only_boxes_are_normalized():
    spec = {
        "box": ArraySpec("box", (1,), "float32"),
        "image": ArraySpec("image", (4, 4), "uint8"),
        "binary": ArraySpec("multi_binary", (2,), "float32", 0.0, 1.0),
        "choices": ArraySpec("multi_discrete", (2,), "int64", sizes=(2, 3), start=(0, 0)),
    }
    prepare = Preprocess(spec, NormalizeConfig(obs=True))
    obs = {
        "box": torch.tensor([[4.0], [8.0]]),
        "image": torch.full((2, 4, 4), 255, dtype=torch.uint8),
        "binary": torch.tensor([[0.0, 1.0], [1.0, 1.0]]),
        "choices": torch.tensor([[0, 2], [1, 0]]),
    }
    prepare.absorb(obs)
    prepared = prepare(obs)
    torch.testing.assert_close(prepared["box"], torch.tensor([[-1.0], [1.0]]))
    assert (prepared["image"] == 1).all()
    assert torch.equal(prepared["binary"], obs["binary"])
    assert prepared["choices"].tolist() == [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]]


def test_the_critic_learns_in_units_of_the_return():
    critic = critics["scalar"](2, PolicyConfig(), NormalizeConfig(returns=True))
    critic.absorb(torch.tensor([-10.0, 30.0]))  # mean 10, deviation 20
    latent = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    prediction = critic(latent)
    torch.testing.assert_close(critic.value(prediction), 10 + 20 * prediction)
    loss = critic.loss(prediction, ValueTargets(critic.value(prediction) + 20, critic.value(prediction), None))
    assert loss.item() == pytest.approx(1, abs=1e-4)
