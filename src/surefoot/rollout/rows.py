"""Where every row is between two rollouts: its env, its memory, its running episode."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.philox import Stream, uniforms
from surefoot.core.records import State
from surefoot.envs.protocol import VecEnv
from surefoot.envs.steps import check_step
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.episodes import EpisodeTracker


class Rows:
    """The envs, the memory they write into, and how far they are; `step` counts steps of a row."""

    def __init__(self, env: VecEnv, policy: Policy, num_steps: int, seed: int) -> None:
        self.env, self._seed = env, seed
        self.buffer = RolloutBuffer(num_steps, env, policy.head)
        self.episodes = EpisodeTracker(env)
        self.memory: State = ()
        self.step = 0
        self.restart(policy)

    def restart(self, policy: Policy) -> None:
        """Start every env and every row's memory anew."""
        self.env.reset(self.buffer.opening, self.step)
        check_step(self.env, self.buffer.opening, self.step)
        self.buffer.episode_start[-1] = True
        self.memory = policy.initial_state(self.env.num_rows)
        self.episodes.forget_running()

    def noise(self, policy: Policy) -> Tensor:
        """The noise of the next rollout `[T, N, ...]`: a function of seed, step and row alone (S13)."""
        steps = np.arange(self.step, self.step + len(self.buffer.slots))
        rows = np.arange(self.env.num_rows)
        drawn = uniforms(self._seed, steps, rows, policy.head.noise_size, Stream.ACTION)
        return policy.head.noise(torch.from_numpy(drawn))

    def can_save_envs(self) -> bool:
        """Whether the envs can say what state they are in."""
        return self.env.save_state() is not None

    def state(self) -> dict[str, Any]:
        """For checkpoints; `envs` is None if they cannot say."""
        return {
            "step": self.step,
            "opening": self.buffer.opening_state(),
            "memory": list(self.memory),
            "episodes": self.episodes.state(),
            "envs": self.env.save_state(),
        }

    def load_state(self, state: dict[str, Any], policy: Policy) -> bool:
        """Go on from a checkpoint; False if the envs had to start new episodes instead."""
        self.step = state["step"]
        self.episodes.load_state(state["episodes"])
        if state["envs"] is None or not self.buffer.fits(state["opening"]):
            self.restart(policy)
            return False
        self.env.load_state(state["envs"])
        self.buffer.load_opening(state["opening"])
        self.memory = tuple(state["memory"])
        return True
