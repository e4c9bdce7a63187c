"""The native collector: complete rollouts in the C++ core, written directly into the rollout's tensors."""

import logging
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.data.moments import Moments
from surefoot.data.records import Chunks, Episodes, Rollout, State
from surefoot.data.specs import ArraySpec
from surefoot.data.tree import tree_items
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.protocol.checks import dead_mask_error, nonfinite_error
from surefoot.errors import PolicyError
from surefoot.native import core
from surefoot.philox import Stream
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import NativePlan, native_tensors, plan_policy
from surefoot.policies.policy import Policy
from surefoot.policies.until_changed import UntilChanged
from surefoot.rollout.actors import Actor
from surefoot.rollout.collector import Collector
from surefoot.rollout.rows import Rows
from surefoot.rollout.script import Script
from surefoot.rollout.stepwise import StepwiseCollector

_log = logging.getLogger("surefoot")


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
        self.description, self.is_native = f"native on {env.threads} thread{'s' * (env.threads > 1)}", True
        self._told: str | None = None
        self._env, self._plan, self._policy = env, plan, core().Policy(plan.plain)
        self._described = UntilChanged(_described)
        self._others: dict[str, tuple[Actor, Any]] = {}
        self._keys = [key for key, _ in tree_items(env.obs_spec)]
        self._normalized = [leaf["normalizer"] != "" for leaf in plan.plain["obs"]]

    # tour: collect
    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row, then the bootstrap values, without Python in between."""
        rows, buffer = self.rows, self.rows.buffer
        others = self._synced_others()
        if isinstance(others, NotNative):
            return self._collect_stepwise(policy, others.reason)
        buffer.valid.fill_(True)  # rows of other policies may have been masked out in the last rollout
        self._sync(policy)  # first: rejecting a policy must not end the episodes
        rows.begin()
        memory = rows.memory  # a copy, which the core updates in every step
        result = self._env.core.collect(
            self._policy,
            buffer.flat | self._arrays_of_rows() | self._memory_arrays(memory),
            *(rows.seed, rows.first_step, rows.env.first_row, int(Stream.ACTION)),
            others,
        )
        if result.problem is not None:
            raise self._error(result.problem)
        rows.remember(0, memory)  # a native env has one group
        finished = Episodes(result.total_rewards, result.lengths)
        if (metrics := buffer.tensors.get("metrics")) is not None:
            ended = buffer.terminated | buffer.truncated
            finished = rows.episodes.with_metrics(finished, metrics, ended, buffer.valid)
        stats = rows.episodes.adopt(finished, result.num_steps, result.out_of_bounds)
        return rows.finish(stats, self._moments(result))

    # tour: end

    def _collect_stepwise(self, policy: Policy, reason: str) -> Rollout:
        if self._told != reason:
            _log.info("rollouts: step by step, because %s", reason)
        self._told = reason
        return self._stepwise.collect(policy)

    def _arrays_of_rows(self) -> dict[str, list[NDArray[Any]]]:
        """What rows bring into a rollout and take from it, besides its fields."""
        rows, actors = self.rows, self.rows.actors
        running_reward, running_length = rows.episodes.running
        arrays = {
            "last_value": [rows.buffer.last_value.numpy()],
            "running_reward": [running_reward],
            "running_length": [running_length],
        }
        return arrays if actors.is_alone else arrays | {"acting": [actors.now_acting], "wanted": [actors.wanted]}

    def _memory_arrays(self, memory: State) -> dict[str, list[NDArray[Any]]]:
        if not memory:
            return {}
        return {
            "memory": _flat(memory),
            "stored_state": [tensor.flatten(2).numpy() for tensor in self.rows.buffer.state],
            "state_steps": [np.array(self.rows.buffer.chunks.state_steps, np.int64)],
        }

    def _synced_others(self) -> list[tuple[int, Any, list[NDArray[Any]], bool]] | NotNative:
        """The other policies that act in rows, for the core; or why it cannot run one of them."""
        others, numbers, assigned = [], self.rows.actors.numbers, self.rows.actors.assigned()
        self._others = {name: kept for name, kept in self._others.items() if assigned.get(name) is kept[0]}
        for name, actor in assigned.items():
            if isinstance(actor, Script):
                return NotNative(f"'{name}', which acts in some rows, is a Python function")
            if name not in self._others:
                plan = plan_policy(actor.policy)
                if isinstance(plan, NotNative):
                    return NotNative(f"the core cannot run '{name}', which acts in some rows: {plan.reason}")
                if [leaf["key"] for leaf in plan.plain["obs"]] != self._keys:
                    return NotNative(f"'{name}', which acts in some rows, observes only some of the keys")
                self._others[name] = actor, core().Policy(plan.plain)
            self._others[name][1].sync(native_tensors(actor.policy))  # type: ignore[arg-type]
            others.append((numbers[name], self._others[name][1], _flat(actor.memory), actor.is_followed))
        return others

    def _sync(self, policy: Policy) -> None:
        """Update the core's copy of the policy: more than its weights may have changed since the last rollout."""
        plan, tensors = self._described.of(policy)
        if isinstance(plan, NotNative):
            raise PolicyError(
                f"the policy was changed during a run with native rollouts: {plan.reason}; set rollout.engine to local"
            )
        if plan != self._plan:
            self._plan, self._policy = plan, core().Policy(plan.plain)
        self._policy.sync(tensors)

    def _moments(self, result: Any) -> dict[str, Moments]:
        moments = {}
        for leaf, key in enumerate(self._keys):
            if self._normalized[leaf]:
                count, mean, variance = result.moments(leaf)
                shape = self._obs_spec(key).shape
                tensors = [torch.from_numpy(values).reshape(shape) for values in (mean, variance)]
                moments[key] = Moments(torch.tensor(count, dtype=torch.float64), *tensors)
        return moments

    def _error(self, problem: Any) -> Exception:
        step = self.rows.first_step + problem.step
        if problem.where == "action mask":
            return dead_mask_error(self.rows.env, problem.row, step)
        key = self._keys[problem.leaf]
        spec = self._obs_spec(key)
        index = [] if problem.where == "reward" else [int(i) for i in np.unravel_index(problem.index, spec.shape)]
        return nonfinite_error(self.rows.env, problem.where, key, problem.row, index, problem.value, step)

    def _obs_spec(self, key: str) -> ArraySpec:
        specs: dict[str, ArraySpec] = dict(tree_items(self.rows.env.obs_spec))
        return specs[key]


def _described(policy: Policy) -> tuple[NativePlan | NotNative, dict[str, NDArray[np.float32]]]:
    """The plan of a policy, and views of its tensors if there is one."""
    plan = plan_policy(policy)
    return plan, native_tensors(policy) if isinstance(policy, ActorCritic) and not isinstance(plan, NotNative) else {}


def _flat(memory: State) -> list[NDArray[Any]]:
    return [tensor.flatten(1).numpy() for tensor in memory]


def native_collector(
    env: NativeEngine,
    policy: Policy,
    num_steps: int,
    seed: int,
    chunks: Chunks | None = None,
    kind: type[NativeCollector] = NativeCollector,
) -> Collector:
    """The native collector if the core can run the policy, else the stepwise one."""
    plan = plan_policy(policy)
    if isinstance(plan, NotNative):
        return StepwiseCollector(env, policy, num_steps, seed, chunks, reason=plan.reason)
    return kind(env, policy, plan, num_steps, seed, chunks)
