"""The stepwise collector: any VecEnv, any torch policy, one step of all rows at a time."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.philox import Stream, uniforms
from surefoot.core.records import Rollout, State
from surefoot.envs.protocol import Slot, VecEnv
from surefoot.envs.steps import check_step
from surefoot.policies.policy import Policy
from surefoot.rollout.buffer import RolloutBuffer
from surefoot.rollout.episodes import EpisodeTracker
from surefoot.rollout.open_ends import OpenEnds


class StepwiseCollector:
    """Keeps the envs running from one rollout to the next."""

    def __init__(self, env: VecEnv, policy: Policy, num_steps: int, seed: int) -> None:
        self._env, self._seed = env, seed
        self._buffer = RolloutBuffer(num_steps, env, policy.head)
        self._episodes = EpisodeTracker(env)
        self._step = 0
        self._state: State = ()
        self._restart(policy)

    # tour: collect
    @torch.no_grad()
    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, then V of what the steps left open."""
        env, buffer, first_state = self._env, self._buffer, self._state
        buffer.carry_over()
        noise = self._noise(policy)
        open_ends = OpenEnds()
        for t, slot in enumerate(buffer.slots):
            output = policy(*buffer.inputs_at(t, self._state))
            action = output.distribution.sample(noise[t])
            env.step(policy.head.to_env(action).numpy(), slot)
            check_step(env, slot, self._step + t)
            buffer.record(t, action, output)
            self._state = output.state
            # Bootstrap from the pre-reset observation: slot.obs already belongs to the next episode.
            open_ends.keep(t, slot.truncated & ~slot.terminated, env.final_obs, self._state)
        self._step += len(buffer.slots)
        open_ends.value_into(buffer.final_value, policy)
        last_value = policy(*buffer.inputs_at(-1, self._state)).value
        return buffer.rollout(last_value, first_state, self._episodes)

    # tour: end

    def state(self) -> dict[str, Any]:
        """For checkpoints: where every row is. `envs` is None if they cannot say."""
        return {
            "step": self._step,
            "opening": self._buffer.opening_state(),
            "memory": list(self._state),
            "episodes": self._episodes.state(),
            "envs": self._env.save_state(),
        }

    def load_state(self, state: dict[str, Any], policy: Policy) -> bool:
        """Go on from a checkpoint; False if the envs had to start new episodes instead."""
        self._step = state["step"]
        self._episodes.load_state(state["episodes"])
        if state["envs"] is None or not self._buffer.fits(state["opening"]):
            self._restart(policy)
            return False
        self._env.load_state(state["envs"])
        self._buffer.load_opening(state["opening"])
        self._state = tuple(state["memory"])
        return True

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def _restart(self, policy: Policy) -> None:
        opening: Slot = self._buffer.opening
        self._env.reset(opening)
        check_step(self._env, opening, self._step)
        self._buffer.episode_start[-1] = True
        self._state = policy.initial_state(self._env.num_rows)
        self._episodes.forget_running()

    def _noise(self, policy: Policy) -> Tensor:
        """The noise of a whole rollout `[T, N, ...]`: a function of seed, step and row alone (S13)."""
        steps = np.arange(self._step, self._step + len(self._buffer.slots))
        rows = np.arange(self._env.num_rows)
        drawn = uniforms(self._seed, steps, rows, policy.head.noise_size, Stream.ACTION)
        return policy.head.noise(torch.from_numpy(drawn))
