"""The fields of a rollout: one table for allocation, views, minibatches, size estimates and checks.

A new per-step array needs one entry here and code that writes it. The core gets the same table: each field as arrays
`[T, N, size]` by its name (`RolloutBuffer.flat`), of which it reads and writes those that it knows.

The fields that PPO uses are attributes of `Rollout` and `Batch`; all others are extras: `rollout.extras[name]`,
`batch.extras[name]`.
"""

import math
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import Rollout
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.protocol import VecEnv
from surefoot.policies.policy import Policy

ENV, POLICY, COLLECTOR, HOOK = "environment", "policy", "collector", "hook"
NAMED = frozenset(item.name for item in dataclass_fields(Rollout))


@dataclass(frozen=True)
class Field:
    """One array per step and row."""

    name: str
    spec: ObsSpec
    """Spec of one row at one step."""
    writer: str
    is_learned: bool = True
    """Whether minibatches include it."""
    has_next: bool = False
    """Whether it has one more step: the values after the last step, with which the next rollout starts."""
    fill: float = 0

    def allocate(self, num_steps: int, num_rows: int) -> Any:
        """Tensors `[T, N, ...]`, or `[T + 1, N, ...]` if it has a next step."""
        return tree_map(lambda spec: self._filled(spec, num_steps + self.has_next, num_rows), self.spec)

    def num_bytes(self, num_steps: int) -> int:
        """Of one row."""
        one: int = sum(spec.size * np.dtype(spec.dtype).itemsize for _, spec in tree_items(self.spec))
        return one * (num_steps + self.has_next)

    def steps(self, whole: Any) -> Any:
        """The tensor without the next step."""
        return tree_map(lambda leaf: leaf[:-1], whole) if self.has_next else whole

    def _filled(self, spec: ArraySpec, *lead: int) -> Tensor:
        zeros = torch.as_tensor(spec.zeros(*lead))
        return zeros.fill_(self.fill) if self.fill else zeros


def array(shape: tuple[int, ...] = (), dtype: str = "float32") -> ArraySpec:
    """A spec of unbounded numbers."""
    return ArraySpec("box", shape, dtype)


def fields_of(env: VecEnv, policy: Policy) -> dict[str, Field]:
    """All fields of a rollout of these environments and this policy, by name."""
    flag, number, head = array(dtype="bool"), array(), policy.head
    action = array(head.action_shape, str(head.action_dtype).removeprefix("torch."))
    table = [
        Field("obs", env.obs_spec, ENV, has_next=True),
        Field("action", action, POLICY),
        Field("log_prob", number, POLICY),
        Field("value", number, POLICY),
        Field("reward", number, ENV, is_learned=False),
        Field("terminated", flag, ENV, is_learned=False),
        Field("truncated", flag, ENV, is_learned=False),
        Field("valid", flag, ENV, is_learned=False, fill=1),
        Field("final_value", number, COLLECTOR, is_learned=False),
        Field("episode_start", flag, COLLECTOR, has_next=True, fill=1),
    ]
    if env.mask_size:
        table.append(Field("action_mask", array((env.mask_size,), "bool"), ENV, has_next=True, fill=1))
    if env.metrics:
        table.append(Field("metrics", array((len(env.metrics),)), ENV, is_learned=False, fill=math.nan))
    shape = (
        policy.critic.prediction_shape if hasattr(policy, "critic") else None
    )  # a policy that only acts has no critic
    if shape is not None:
        table.append(Field("prediction", array(shape), POLICY))
    table += [Field(name, spec, POLICY) for name, spec in policy.extras().items()]
    return {field.name: field for field in table}
