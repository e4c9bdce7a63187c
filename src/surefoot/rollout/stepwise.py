"""The stepwise collector: any VecEnv, any torch policy, one step of all rows at a time."""

import torch

from surefoot.core.records import Rollout
from surefoot.envs.protocol import VecEnv
from surefoot.envs.steps import check_step
from surefoot.policies.policy import Policy
from surefoot.rollout.open_ends import OpenEnds
from surefoot.rollout.rows import Rows


class StepwiseCollector:
    """Keeps the rows running from one rollout to the next."""

    def __init__(self, env: VecEnv, policy: Policy, num_steps: int, seed: int) -> None:
        self.rows = Rows(env, policy, num_steps, seed)

    # tour: collect
    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, then V of what the steps left open."""
        rows, buffer, env = self.rows, self.rows.buffer, self.rows.env
        first_memory, open_ends = rows.memory, OpenEnds()
        buffer.carry_over()
        noise = rows.noise(policy)
        with torch.inference_mode():
            for t, slot in enumerate(buffer.slots):
                output = policy(*buffer.inputs_at(t, rows.memory))
                action = output.distribution.sample(noise[t])
                env.step(policy.head.to_env(action).numpy(), slot)
                check_step(env, slot, rows.step)
                buffer.record(t, action, output)
                # Bootstrap from the pre-reset observation: slot.obs already belongs to the next episode.
                open_ends.keep(t, slot.truncated & ~slot.terminated, env.final_obs, output.state)
                rows.memory, rows.step = output.state, rows.step + 1
            open_ends.value_into(buffer.final_value, policy)
            buffer.last_value.copy_(policy(*buffer.inputs_at(-1, rows.memory)).value)
        return buffer.rollout(first_memory, rows.episodes)

    # tour: end
