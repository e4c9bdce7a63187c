"""Several agents: a PettingZoo environment whose agents share one policy. Needs the extra `pettingzoo`.

Known environments have names: `PPO("pettingzoo:mpe2.simple_spread_v3", kwargs={"N": 3}, max_episode_steps=25)`.
"""

import sys

import gymnasium as gym
import numpy as np
from pettingzoo import ParallelEnv

from surefoot import PPO

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000


class Convoy(ParallelEnv):
    """Three robots on a line spread out until neighbors are 1 apart; each sees the distances to the other two."""

    metadata = {"name": "convoy", "render_modes": []}
    possible_agents = ["left", "middle", "right"]

    def __init__(self):  # the methods below must return the same object at every call
        self.seen = {agent: gym.spaces.Box(-np.inf, np.inf, (5,), np.float32) for agent in self.possible_agents}
        self.moves = {agent: gym.spaces.Discrete(3) for agent in self.possible_agents}

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return self.moves[agent]

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        if seed is not None:  # only the first episode is seeded
            self.random = np.random.default_rng(seed)
        self.positions = self.random.uniform(-1, 1, 3)
        return self._observations(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.positions += [0.1 * (int(actions[agent]) - 1) for agent in self.possible_agents]
        self.time += 1
        error = np.abs(np.diff(self.positions) - 1.0).mean()  # one reward for the team
        agents, is_over = self.agents, self.time == 25
        self.agents = [] if is_over else agents
        flags = dict.fromkeys(agents, False), dict.fromkeys(agents, is_over)
        return self._observations(), dict.fromkeys(agents, -error), *flags, {agent: {} for agent in agents}

    def _observations(self):
        """Who am I (one-hot, because the agents share a policy), and where are the others?"""
        names, who = self.possible_agents, np.eye(3)
        others = [np.delete(self.positions - position, index) for index, position in enumerate(self.positions)]
        return {name: np.concatenate((who[i], others[i])).astype(np.float32) for i, name in enumerate(names)}


agent = PPO(Convoy, num_envs=8, num_steps=50, batch_size=200, gamma=0.95, lr=3e-3, seed=1)
before = agent.evaluate(episodes=30).mean_reward
after = agent.learn(STEPS).evaluate(episodes=30).mean_reward
print(f"return per agent before {before:.1f}, after {after:.1f}")
