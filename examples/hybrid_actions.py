"""Hybrid actions: a choice and numbers at once, as a Tuple or Dict of spaces, each with its own distribution."""

import sys

import gymnasium as gym
import numpy as np

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
CUT, WELD, PAINT = range(3)


class Workshop(gym.Env):
    """Choose the tool that a workpiece needs, and put it where the workpiece is; there is not always paint."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (5,), np.float32)
    action_space = gym.spaces.Dict(
        {"tool": gym.spaces.Discrete(3), "place": gym.spaces.Box(-1.0, 1.0, (2,), np.float32)}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._next(), self._info()

    def step(self, action):
        miss = float(np.abs(action["place"] - self.place).sum())
        reward = float(action["tool"] == self.needed) - miss
        self.count += 1
        return self._next(), reward, False, self.count == 20, self._info()

    def _next(self):
        self.has_paint = bool(self.np_random.integers(2))
        self.needed = int(self.np_random.integers(3 if self.has_paint else 2))
        self.place = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return np.concatenate((np.eye(3)[self.needed], self.place)).astype(np.float32)

    def _info(self):
        return {"action_mask": {"tool": np.array([True, True, self.has_paint])}}  # of the choices; optional


agent = PPO(Workshop, num_envs=16, num_steps=64, batch_size=256, lr=3e-3, gamma=0.5, seed=1)
before = agent.evaluate(episodes=20).mean_reward
after = agent.learn(STEPS).evaluate(episodes=20).mean_reward
print(f"return before {before:.1f}, after {after:.1f} of 20")

env = Workshop()
obs, info = env.reset(seed=0)
action, _ = agent.predict(obs, action_mask=info["action_mask"])
print(f"needed tool {env.needed} at {env.place.round(1)}, chosen {action['tool']} at {action['place'].round(1)}")
