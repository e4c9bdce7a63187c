"""Action masks: the env says which actions are allowed, and the policy gives the others probability 0."""

import sys

import gymnasium as gym
import numpy as np

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
CARDS = 6


class Cards(gym.Env):
    """Play a hand of cards in ascending order, each card once; a point for each card that beats the last one."""

    observation_space = gym.spaces.Box(0.0, 1.0, (CARDS + 1,), np.float32)
    action_space = gym.spaces.Discrete(CARDS)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.hand, self.is_held = self.np_random.random(CARDS), np.ones(CARDS, bool)
        self.last = 0.0
        return self._observation(), {"action_mask": self.is_held.copy()}

    def step(self, action):
        assert self.is_held[action], "masked actions are never taken"
        reward = float(self.hand[action] > self.last)
        self.last, self.is_held[action] = self.hand[action], False
        is_over = not self.is_held.any()
        mask = np.ones(CARDS, bool) if is_over else self.is_held.copy()  # it must allow something
        return self._observation(), reward, is_over, False, {"action_mask": mask}

    def _observation(self):
        return np.append(self.hand * self.is_held, self.last).astype(np.float32)


agent = PPO(Cards, num_envs=32, num_steps=48, batch_size=256, lr=2e-3, gamma=1.0, entropy_coef=0.01, seed=1)
before = agent.evaluate(episodes=100).mean_reward
after = agent.learn(STEPS).evaluate(episodes=100).mean_reward
print(f"cards in order before {before:.1f}, after {after:.1f} of {CARDS}")

env = Cards()
obs, info = env.reset(seed=0)
order, is_over = [], False
while not is_over:
    action, _ = agent.predict(obs, action_mask=info["action_mask"])
    order.append(env.hand[action])
    obs, _, is_over, _, info = env.step(action)
print("played:", " ".join(f"{card:.2f}" for card in order))
