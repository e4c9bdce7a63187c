"""Your own networks: first an encoder (any `nn.Module`), then a whole policy."""

import sys

import torch
from torch import nn

from surefoot import PPO, Policy, PolicyOutput
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.settings.config import NormalizeConfig, PolicyConfig

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000


class Residual(nn.Module):
    """Maps a batch of observations to features; actor and critic each get one, followed by their trunk."""

    def __init__(self, size, width=32):
        super().__init__()
        self.inside, self.block = nn.Linear(size, width), nn.Sequential(nn.Linear(width, width), nn.SiLU())

    def forward(self, obs):
        features = self.inside(obs)
        return features + self.block(features)


class LinearActor(Policy):
    """A policy that can be read: logits are linear in the observation, and only the critic has hidden layers."""

    def __init__(self, obs, action):
        super().__init__()
        config = PolicyConfig()
        self.head = CategoricalHead(obs.size, action, config)
        self.trunk = nn.Sequential(nn.Linear(obs.size, 64), nn.Tanh())
        self.critic = ScalarCritic(64, config, NormalizeConfig())

    def forward(self, obs, state, episode_start, action_mask=None):
        prediction = self.critic(self.trunk(obs))
        return PolicyOutput(self.head(obs, action_mask), prediction, self.critic.value(prediction), state)


def train(name, **networks):
    """Print the return before and after."""
    agent = PPO("CartPole-v1", seed=1, eval_episodes=0, **networks)
    before = agent.evaluate(episodes=10).mean_reward
    after = agent.learn(STEPS).evaluate(episodes=10).mean_reward
    print(f"{name}: return before {before:.1f}, after {after:.1f}")


torch.manual_seed(0)  # for the modules that you create; `seed` is for the rest
train("residual encoder", encoder=Residual(4))
specs = PPO("CartPole-v1").specs
policy = LinearActor(specs.obs, specs.action)
train("linear policy", policy=policy)
left, right = policy.head.logits.weight.tolist()
names = ("position", "speed", "angle", "turning")
rule = " ".join(f"{to - off:+.2f} {name}" for off, to, name in zip(left, right, names, strict=True))
print(f"the linear policy pushes right if {rule} > 0 (bias left out)")
