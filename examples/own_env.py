"""Your own environment: a `gymnasium.Env`, which is passed to `PPO` as a class or a function that creates it."""

import sys

import gymnasium as gym
import numpy as np

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000


class Docking(gym.Env):
    """Push a boat to position 0 and keep it there; reward is minus the distance, and a little less for each push."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    metrics = {"is_docked": "last"}  # numbers from `info` that are logged and evaluated

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.speed, self.time = self.np_random.uniform(-2, 2), 0.0, 0
        return self._observation(), {}

    def step(self, action):
        push = float(action[0])
        self.speed = 0.95 * self.speed + 0.1 * push
        self.position += 0.3 * self.speed
        self.time += 1
        is_lost = abs(self.position) > 4  # terminated: nothing follows
        is_late = self.time == 60  # truncated: the return is bootstrapped, because the boat would stay there
        info = {"is_docked": abs(self.position) < 0.1}
        return self._observation(), -abs(self.position) - 0.01 * push**2, is_lost, is_late, info

    def _observation(self):
        return np.array([self.position, self.speed], np.float32)


agent = PPO(Docking, num_envs=16, num_steps=64, batch_size=256, lr=1e-3, gamma=0.97, seed=1)
before = agent.evaluate(episodes=20)
agent.learn(STEPS)
after = agent.evaluate(episodes=20)
print(f"return before {before.mean_reward:.1f}, after {after.mean_reward:.1f}")
print(f"docked before {before.mean_metric('is_docked'):.0%}, after {after.mean_metric('is_docked'):.0%}")
