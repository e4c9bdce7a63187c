"""The stepwise collector: works with any VecEnv and any PyTorch policy, one step of a group of rows at a time."""

import torch
from torch import Tensor

from surefoot.data.records import Chunks, Rollout
from surefoot.envs.engines import Engine
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.checks import check_step
from surefoot.policies.policy import Policy
from surefoot.rollout.open_ends import OpenEnds
from surefoot.rollout.rows import Rows


class StepwiseCollector:
    """Keeps the rows running from one rollout to the next."""

    def __init__(
        self,
        env: VecEnv,
        policy: Policy,
        num_steps: int,
        seed: int,
        chunks: Chunks | None = None,
        rows: Rows | None = None,
        reason: str = "",
    ) -> None:
        self.rows = rows or Rows(env, policy, num_steps, seed, chunks)
        why = reason or getattr(env, "why_not_native", "")
        name = type(env).name if isinstance(env, Engine) else "vector env"
        self.description, self.is_native = f"step by step, {name}" + f" ({why})" * bool(why), False

    # tour: collect
    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, then the bootstrap values."""
        rows, buffer, open_ends = self.rows, self.rows.buffer, OpenEnds()
        rows.begin()
        noise = rows.noise(policy)
        with torch.inference_mode():
            for t in range(len(buffer.slots)):
                for group in range(len(rows.env.groups)):  # the policy acts for one group while the others step
                    if t > 0:
                        self._arrive(t - 1, group, open_ends)
                    self._act(t, group, policy, noise[t])
            for group in range(len(rows.env.groups)):
                self._arrive(len(buffer.slots) - 1, group, open_ends)
            open_ends.value_into(buffer.final_value, policy)
            buffer.last_value.copy_(policy(*buffer.inputs_at(-1, rows.memory)).value)
        rows.settle()
        return rows.finish(rows.buffer.stats(rows.episodes))

    def _act(self, t: int, group: int, policy: Policy, noise: Tensor) -> None:
        """Compute the actions of a group, send them, and record them while the envs step."""
        rows = self.rows
        output = policy(*rows.buffer.inputs_at(t, rows.memory_before(t, group), group))
        action = output.distribution.sample(noise[rows.env.groups[group]])
        action, env_actions = rows.actors.replace(t, rows.first_step + t, group, action, policy.head.to_env(action))
        rows.env.send(group, env_actions.numpy())
        rows.buffer.record(t, group, action, output)
        rows.remember(group, output.state)

    def _arrive(self, t: int, group: int, open_ends: OpenEnds) -> None:
        """Receive and record the step of a group."""
        env, rows, slot = self.rows.env, self.rows.env.groups[group], self.rows.buffer.slots[t]
        env.receive(group, slot)
        check_step(env, slot, self.rows.first_step + t, rows)
        self.rows.buffer.mark_starts(t, rows)
        # Bootstrap from the pre-reset observation: slot.obs already belongs to the next episode.
        open_ends.keep(t, rows, slot.truncated & ~slot.terminated, env.final_obs, self.rows.memory_of(group))

    # tour: end
