"""Encoders and whole policies of the user's own."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot import PPO
from surefoot.data.records import IterationReport, Obs, State
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.errors import CheckpointMismatchError, PolicyError
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.storage.state import states
from tests.envs.tasks import CounterEnv
from tests.training.states import assert_same

TINY = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": 4, "eval_episodes": 0, "lr": 0.01}
CONSTANT = {"lr_schedule": "constant", "clip_schedule": "constant"}


def weights(agent: PPO) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in agent.policy.state_dict().items()}


def assert_learns(agent: PPO, part: str) -> None:
    """Every weight of a part moves."""
    before = weights(agent)
    agent.learn(64)
    after = weights(agent)
    moved = {name: not before[name].equal(after[name]) for name in before if name.startswith(part)}
    assert moved
    assert all(moved.values()), moved


class Waves(nn.Module):
    """Sines of a learned projection."""

    def __init__(self, size: int = 4, features: int = 6) -> None:
        super().__init__()
        self.project = nn.Linear(size, features)

    def forward(self, obs: Tensor) -> Tensor:
        return self.project(obs).sin()


def test_an_own_encoder():
    agent = PPO("CartPole-v1", encoder=Waves(), **TINY)
    body = agent.policy.actor_body
    assert isinstance(body.encoder, Waves)
    assert body.trunk.layers[0].in_features == 6
    assert_learns(agent, "actor_body.encoder")


def test_actor_and_critic_each_have_a_copy_and_the_users_module_is_left_alone():
    mine = Waves()
    before = mine.project.weight.clone()
    agent = PPO("CartPole-v1", encoder=mine, **TINY).learn(32)
    actor, critic = agent.policy.actor_body.encoder, agent.policy.critic_body.encoder
    assert torch.equal(mine.project.weight, before)
    assert not torch.equal(actor.project.weight, critic.project.weight)
    assert not torch.equal(actor.project.weight, before)


def test_a_shared_trunk_has_one():
    agent = PPO("CartPole-v1", encoder=Waves(), share_trunk=True, **TINY).learn(32)
    assert agent.policy.critic_body is None


def test_an_own_encoder_is_given_again_on_loading(tmp_path):
    path = tmp_path / "model.safetensors"
    agent = PPO("CartPole-v1", encoder=Waves(), **TINY, **CONSTANT).learn(64)
    agent.save(path)
    with pytest.raises(CheckpointMismatchError, match=r"actor_body\.encoder\.project\.weight is unknown"):
        PPO.load(path)
    loaded = PPO.load(path, encoder=Waves())
    obs = np.random.default_rng(1).normal(size=(30, 4))
    assert np.array_equal(loaded.predict(obs)[0], agent.predict(obs)[0])
    assert_same(states(loaded.learn(32)._started().stateful()), states(agent.learn(32)._started().stateful()))


def test_a_factory_is_told_what_the_encoder_will_see():
    seen: list[ObsSpec] = []

    def build(spec: ObsSpec) -> nn.Module:
        assert isinstance(spec, ArraySpec)
        seen.append(spec)
        return Waves(spec.size, 3)

    agent = PPO("FrozenLake-v1", encoder=build, **TINY)
    assert [spec.shape for spec in seen] == [(16,), (16,)], "one-hot, once for the actor and once for the critic"
    assert_learns(agent, "actor_body.encoder")


class Parts(nn.Module):
    """Takes a dict observation."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 5)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        return self.mix(torch.cat((obs["where"], obs["luck"]), dim=1))


def test_an_encoder_of_a_dict():
    agent = PPO(lambda: CounterEnv(form="dict"), encoder=Parts(), normalize={"obs": True}, **TINY)
    assert_learns(agent, "actor_body.encoder")
    assert agent.policy.state_dict()["preprocess.normalizers.obs/where.count"] == 64


def test_an_encoder_that_gives_no_features_is_refused():
    with pytest.raises(
        PolicyError, match=r"an encoder must return features of shape \[batch, size\]; Flatten does not"
    ):
        PPO("CartPole-v1", encoder=nn.Flatten(0), **TINY)


class ChannelsFirst(nn.Module):
    """As torch's convolutions expect images, which Gymnasium's envs do not give."""

    def __init__(self, permute: bool) -> None:
        super().__init__()
        self.layers, self.permute = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()), permute

    def forward(self, obs: Tensor) -> Tensor:
        return self.layers(obs.permute(0, 3, 1, 2) if self.permute else obs)


def test_layers_that_are_no_convolutions_are_not_told_to_permute():
    with pytest.raises(PolicyError, match=r"observations of shape \[B, 12, 13, 3\]: RuntimeError"):
        PPO(lambda: CounterEnv(form="image"), encoder=nn.Sequential(nn.Flatten(), nn.Linear(7, 4)), **TINY)


def test_an_encoder_that_cannot_read_images_is_told_what_arrives_and_how_to_permute():
    message = (
        r"the encoder ChannelsFirst cannot read observations of shape \[B, 12, 13, 3\] with channels last, which"
        r" convolutions of torch need first: call obs\.permute\(0, 3, 1, 2\): RuntimeError: Given groups=1"
    )
    with pytest.raises(PolicyError, match=message):
        PPO(lambda: CounterEnv(form="image"), encoder=ChannelsFirst(permute=False), **TINY)
    assert_learns(PPO(lambda: CounterEnv(form="image"), encoder=ChannelsFirst(permute=True), **TINY), "actor_body.enc")
    with pytest.raises(
        PolicyError, match=r"Waves cannot read observations of shape luck \[B, 1\], where \[B, 3\]: Type"
    ):
        PPO(lambda: CounterEnv(form="dict"), encoder=Waves(), **TINY)


class Own(Policy):
    """Everything by hand: a gated cell, two heads, a count of what it has absorbed."""

    def __init__(self, obs_size: int, action_spec: ArraySpec, hidden: int = 5) -> None:
        super().__init__()
        config = PolicyConfig()
        self._hidden = hidden
        self.cell = nn.GRUCell(obs_size, hidden)
        self.head = CategoricalHead(hidden, action_spec, config)
        self.critic = ScalarCritic(hidden, config, NormalizeConfig(returns=True))
        self.register_buffer("absorbed", torch.zeros((), dtype=torch.int64))

    def forward(self, obs: Obs, state: State, episode_start: Tensor, action_mask: Tensor | None = None) -> PolicyOutput:
        assert isinstance(obs, Tensor)
        memory = self.cell(obs, torch.zeros(len(obs), self._hidden))
        prediction = self.critic(memory)
        return PolicyOutput(self.head(memory, action_mask), prediction, self.critic.value(prediction), state)

    def absorb_obs(self, obs: Obs) -> None:
        self.absorbed += len(obs)


CART_POLE_ACTION = ArraySpec("discrete", (), "int64", sizes=(2,), start=(0,))


def own(seed: int = 0) -> Own:
    torch.manual_seed(seed)
    return Own(4, CART_POLE_ACTION)


def test_a_whole_policy_of_ones_own_learns_and_is_saved(tmp_path):
    path = tmp_path / "model.safetensors"
    mine = own()
    agent = PPO("CartPole-v1", policy=mine, **TINY, **CONSTANT)
    assert agent.policy is mine
    assert_learns(agent, "cell.weight_ih")
    assert mine.absorbed == 64
    agent.save(path)
    with pytest.raises(CheckpointMismatchError, match=r"cell\.weight_ih is unknown"):
        PPO.load(path)
    loaded = PPO.load(path, policy=own(seed=1))
    obs = np.random.default_rng(1).normal(size=(30, 4))
    assert np.array_equal(loaded.predict(obs)[0], agent.predict(obs)[0])
    assert_same(states(loaded.learn(64)._started().stateful()), states(agent.learn(64)._started().stateful()))
    assert loaded.evaluate(2) == agent.evaluate(2)


def test_a_policy_of_another_shape_is_refused_on_loading(tmp_path):
    path = tmp_path / "model.safetensors"
    PPO("CartPole-v1", policy=own(), **TINY).save(path)
    with pytest.raises(CheckpointMismatchError, match=r"head\.logits\.weight"):
        PPO.load(path, policy=Own(4, CART_POLE_ACTION, hidden=6))


class Clock(Policy):
    """Knows how long its episode is: what it remembers is a count, and it takes action count % 4."""

    def __init__(self, action_spec: ArraySpec) -> None:
        super().__init__()
        self.head = CategoricalHead(4, action_spec, PolicyConfig())
        self.critic = ScalarCritic(4, PolicyConfig(), NormalizeConfig())
        with torch.no_grad():
            self.head.logits.weight.copy_(20 * torch.eye(4))

    def forward(
        self,
        obs: Obs,
        state: State,
        episode_start: Tensor,
        action_mask: Tensor | None = None,
        batch_sizes: Tensor | None = None,
    ) -> PolicyOutput:
        count = torch.where(episode_start[: len(state[0])], 0, state[0]) + 1
        if batch_sizes is not None:
            count = torch.cat([count[:size] + step for step, size in enumerate(batch_sizes.tolist())])
        latent = nn.functional.one_hot(count % 4, 4).float()
        prediction = self.critic(latent)
        return PolicyOutput(self.head(latent), prediction, prediction, (count,))

    def initial_state(self, num_rows: int) -> State:
        return (torch.zeros(num_rows, dtype=torch.int64),)


FOUR_CHOICES = ArraySpec("discrete", (), "int64", sizes=(4,), start=(0,))


def test_a_memory_of_whole_numbers_learns():
    agent = PPO(CounterEnv, policy=Clock(FOUR_CHOICES), **TINY)
    counts = []

    class Watch:
        def after_iteration(self, report: IterationReport) -> None:
            counts.append(report.learned.metrics["memory/part_0_mean"])

    agent.learn(64, hooks=[Watch()])
    assert counts[-1] > 0


def test_a_memory_is_carried_from_call_to_call():
    agent = PPO(CounterEnv, policy=Clock(FOUR_CHOICES), **TINY)
    obs = CounterEnv().reset(seed=0)[0]
    state: Any = None
    taken = []
    for start in (True, False, False, True, False):
        action, state = agent.predict(obs, state, start)
        taken.append(int(action))
    assert taken == [1, 2, 3, 1, 2]
    batch = np.stack([obs, obs])
    _, state = agent.predict(batch, None, True)
    actions, state = agent.predict(batch, state, np.array([False, True]))
    assert actions.tolist() == [2, 1]
