"""An environment that reports metrics and takes a parameter: `corridor:Corridor-v0`."""

import gymnasium as gym
import numpy as np


class Corridor(gym.Env):
    """Walk to the end of a corridor against the wind."""

    observation_space = gym.spaces.Box(-2.0, 2.0, (2,))
    action_space = gym.spaces.Discrete(2)
    metrics = {"is_success": "last", "reward_effort": "sum", "position": "mean"}
    parameters = {"wind": 0.0}

    def __init__(self):
        self.wind = 0.0

    def set_parameters(self, values):
        self.wind = values["wind"]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.count = self.np_random.uniform(0.0, 0.5), 0
        return self.observation(), {}

    def step(self, action):
        self.count += 1
        self.position = max(-1.0, self.position + 0.2 * float(action) - self.wind)
        effort, is_done = -0.01 * float(action), self.position >= 1.0
        info = {"reward_effort": effort, "position": self.position, "is_success": is_done}
        return self.observation(), float(is_done) + effort, is_done, self.count == 10, info

    def observation(self):
        return np.array([self.position, self.count / 10], np.float32)

    def save_state(self):  # optional: a resumed run continues in the middle of an episode
        return {"position": self.position, "count": self.count}

    def load_state(self, state):
        self.position, self.count = state["position"], state["count"]


gym.register("Corridor-v0", Corridor)
