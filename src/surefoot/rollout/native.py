"""The native collector: complete rollouts in the C++ core, written directly into the rollout's tensors."""

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.core.errors import PolicyError
from surefoot.core.moments import Moments
from surefoot.core.philox import Stream
from surefoot.core.records import Chunks, Episodes, Rollout, State
from surefoot.core.specs import ArraySpec
from surefoot.core.tree import tree_items
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.protocol.steps import dead_mask_error, nonfinite_error
from surefoot.native import core
from surefoot.policies.native_plan import NativePlan, native_tensors, plan_policy
from surefoot.policies.policy import ActorCritic, Policy
from surefoot.rollout.rows import Rows
from surefoot.rollout.stepwise import StepwiseCollector

_log = logging.getLogger("surefoot")

Bounds = list[list[float]]


class NativeCollector:
    """Equal to the stepwise collector: same noise, same steps, same episode ends (`surefoot verify`)."""

    def __init__(
        self,
        env: NativeEngine,
        policy: Policy,
        plan: NativePlan,
        num_steps: int,
        seed: int,
        chunks: Chunks | None = None,
    ) -> None:
        self.rows = Rows(env, policy, num_steps, seed, chunks)
        self._stepwise = StepwiseCollector(env, policy, num_steps, seed, rows=self.rows)
        self._has_told = False
        self._env, self._plan, self._policy = env, plan, core().Policy(plan.plain)
        self._keys = [key for key, _ in tree_items(env.obs_spec)]
        self._normalized = [part["normalizer"] != "" for part in plan.plain["obs"]]
        self._low, self._high = _bounds([spec for _, spec in tree_items(env.obs_spec)])
        self._obs = [leaf.numpy().reshape(*leaf.shape[:2], -1) for _, leaf in tree_items(self.rows.buffer.obs)]
        self._arrays = self._buffer_arrays()

    # tour: collect
    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, then the bootstrap values, without Python in between."""
        rows = self.rows
        if not rows.actors.is_alone:
            return self._collect_stepwise(policy)
        rows.buffer.valid.fill_(True)  # rows of other policies may have been masked out in the last rollout
        self._sync(policy)  # first: rejecting a policy must not end the episodes
        rows.begin()
        memory = rows.memory  # a copy, which the core updates in every step
        running = dict(zip(("running_reward", "running_length"), rows.episodes.running, strict=True))
        result = self._env.core.collect(
            self._policy,
            self._obs,
            self._arrays | running,
            *(rows.seed, rows.first_step, rows.env.first_row, int(Stream.ACTION)),
            *(self._low, self._high, self._normalized),
            **self._memory_arrays(memory),
        )
        if result.problem is not None:
            raise self._error(result.problem)
        rows.remember(0, memory)  # a native env has one group
        buffer, finished = rows.buffer, Episodes(result.total_rewards, result.lengths)
        ended = buffer.terminated | buffer.truncated
        finished = rows.episodes.with_metrics(finished, buffer.tensors.get("metrics"), ended, buffer.valid)
        stats = rows.episodes.adopt(finished, result.num_steps, result.out_of_bounds)
        return rows.finish(stats, self._moments(result))

    # tour: end

    def _collect_stepwise(self, policy: Policy) -> Rollout:
        if not self._has_told:
            _log.info("rollouts: step by step, because other policies act in some rows and the core runs only one")
        self._has_told = True
        return self._stepwise.collect(policy)

    def _memory_arrays(self, memory: State) -> dict[str, Any]:
        if not memory:
            return {}
        return {
            "memory": [part.flatten(1).numpy() for part in memory],
            "stored_state": [part.flatten(2).numpy() for part in self.rows.buffer.state],
            "state_steps": self.rows.buffer.chunks.state_steps,
        }

    def _sync(self, policy: Policy) -> None:
        """Update the core's copy of the policy: more than its weights may have changed since the last rollout."""
        plan = plan_policy(policy)
        if isinstance(plan, str):
            raise PolicyError(
                f"the policy was changed during a run with native rollouts: {plan}; set rollout.engine to local"
            )
        if plan != self._plan:
            self._plan, self._policy = plan, core().Policy(plan.plain)
        assert isinstance(policy, ActorCritic)  # only an ActorCritic has a plan
        self._policy.sync(native_tensors(policy))

    def _buffer_arrays(self) -> dict[str, NDArray[Any]]:
        buffer = self.rows.buffer
        arrays = {name: tensor.numpy() for name, tensor in buffer.tensors.items() if name != "obs"}
        for name in ("action", "prediction"):
            if name in arrays:
                arrays[name] = arrays[name].reshape(*buffer.reward.shape, -1)
        return arrays | {"last_value": buffer.last_value.numpy()}

    def _moments(self, result: Any) -> dict[str, Moments]:
        moments = {}
        for part, key in enumerate(self._keys):
            if self._normalized[part]:
                count, mean, variance = result.moments(part)
                shape = self._obs_spec(key).shape
                tensors = [torch.from_numpy(values).reshape(shape) for values in (mean, variance)]
                moments[key] = Moments(torch.tensor(count, dtype=torch.float64), *tensors)
        return moments

    def _error(self, problem: Any) -> Exception:
        step = self.rows.first_step + problem.step
        if problem.where == "action mask":
            return dead_mask_error(self.rows.env, problem.row, step)
        key = self._keys[problem.part]
        spec = self._obs_spec(key)
        index = [] if problem.where == "reward" else [int(i) for i in np.unravel_index(problem.index, spec.shape)]
        return nonfinite_error(self.rows.env, problem.where, key, problem.row, index, problem.value, step)

    def _obs_spec(self, key: str) -> ArraySpec:
        specs: dict[str, ArraySpec] = dict(tree_items(self.rows.env.obs_spec))
        return specs[key]


def _bounds(specs: list[ArraySpec]) -> tuple[Bounds, Bounds]:
    """Flat bounds of each part of the observation; None for parts without finite bounds, which need no check."""
    low, high = [], []
    for spec in specs:
        below, above = (bound.ravel() for bound in spec.bounds())
        is_bounded = bool(np.isfinite(below).any() or np.isfinite(above).any())
        low.append(below.tolist() if is_bounded else [])
        high.append(above.tolist() if is_bounded else [])
    return low, high
