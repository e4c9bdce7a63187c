"""Native rollouts in which another policy acts in some rows, against one policy alone and the stepwise collector."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_collector
from surefoot.native import core
from surefoot.policies.native_plan import NativePlan
from surefoot.policies.policy import Policy
from surefoot.rollout.actors import Actors
from surefoot.rollout.collector import Collector
from surefoot.rollout.rows import Rows
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.verification.legs import STATE, path, tensors_of
from surefoot.verification.outputs import EDGE, core_to_env
from surefoot.verification.recorded import RecordedPolicy
from surefoot.verification.report import Findings, magnitude
from surefoot.verification.subject import Subject, perturbed

NAME = "other policies"
_FEW = 50
"""One action in so many may differ, where rounding decides between two."""
_ROUNDED = ("log_prob", "value", "prediction", "final_value", "last_value", STATE)
_LEARNERS = ("log_prob", "value", "prediction", "final_value", "valid", "actor", "metrics", STATE)
"""Fields that differ in rows of others: they have no log-probability, no value and no training."""


class RecordedActors(Actors):
    """Notes who acts and what it remembers; the recorded actions of all rows come from the learner's place."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.env, rows.buffer, rows.seed)
        self.num_unlike = self.num_compared = 0

    def replace(self, t: int, step: int, group: int, action: Tensor, env_actions: Tensor) -> tuple[Tensor, Tensor]:
        """Also count the recorded actions of others that are not what they do here."""
        own, _ = super().replace(t, step, group, action, env_actions)
        others = torch.from_numpy(self.now_acting[self._env.groups[group]] > 0)
        apart = (own[others] - action[others]).abs() > 10 * EDGE * magnitude(action.float())
        self.num_unlike, self.num_compared = self.num_unlike + int(apart.sum()), self.num_compared + apart.numel()
        return action, env_actions


def compare_company(findings: Findings, subject: Subject, plan: NativePlan, tolerance: float, engine: str) -> None:
    """Compare two rollouts each; rows change hands in the middle of the second."""
    _compare_copy(findings, subject)
    _compare_stepwise(findings, subject, plan, tolerance, engine)


def _compare_copy(findings: Findings, subject: Subject) -> None:
    """Gathered, scattered and with the noise of its own rows, a copy of the learner does what the learner does."""
    rollouts = []
    for has_copy in (False, True):
        with subject.opened("native") as env:
            policy = subject.new_policy(env)
            collector = build_collector(subject.config, env, policy)
            if has_copy:
                collector.rows.actors.add("copy", deepcopy(policy))
                collector.rows.actors.assign(slice(1, None, 2), "copy")
            rollouts.append([_tensors(collector, policy) for _ in range(2)])
    for alone, together in zip(*rollouts, strict=True):
        for name, whole in alone.items():
            if not name.startswith((*_LEARNERS, "last_value")):
                findings.bits(NAME, "a copy acts as the learner", together[name], whole)
            elif name in ("log_prob", "value"):
                findings.bits(NAME, "the learner in its own rows", together[name][:, ::2], whole[:, ::2])


def _compare_stepwise(findings: Findings, subject: Subject, plan: NativePlan, tolerance: float, engine: str) -> None:
    with subject.opened("native") as fast_env, subject.opened(engine) as slow_env:
        policy = subject.new_policy(fast_env)
        other = perturbed(deepcopy(policy), subject.config.train.seed + 1)
        to_env = core_to_env(core().Policy(plan.plain), policy.head)
        fast = build_collector(subject.config, fast_env, policy)
        slow = _stepwise(subject, build_collector(subject.config, slow_env, policy).rows, policy)
        slow.rows.actors = recorded = RecordedActors(slow.rows)
        for collector in (fast, slow):
            collector.rows.actors.add("other", other)
        for rows, name in ((slice(1, None, 2), "other"), (slice(1, 2), ""), (slice(0, 1), "other")):
            for collector in (fast, slow):
                collector.rows.actors.assign(rows, name)
            ours = _tensors(fast, policy)
            with path(is_readable=True):
                reference = _tensors(slow, RecordedPolicy(policy, ours["action"], to_env))
            _compare(findings, ours, reference, tolerance)
        wrong, total = recorded.num_unlike, recorded.num_compared
        findings.count(NAME, "actions of others", wrong, total, "differ", allowed=total // _FEW)


def _stepwise(subject: Subject, rows: Rows, policy: Policy) -> StepwiseCollector:
    config = subject.config
    return StepwiseCollector(rows.env, policy, config.rollout.num_steps, config.train.seed, rows=rows)


def _compare(findings: Findings, ours: Mapping[str, Tensor], reference: Mapping[str, Tensor], tolerance: float) -> None:
    for name, expected in reference.items():
        if name.startswith(_ROUNDED):
            findings.within(NAME, "log-probs, values, memory", ours[name], expected, tolerance)
        elif name != "metrics":
            findings.bits(NAME, "fields of the stepwise collector", ours[name], expected)


def _tensors(collector: Collector, policy: Policy) -> dict[str, Tensor]:
    collector.collect(policy)
    rows = collector.rows
    memories: dict[str, Any] = {"": rows.memory} | rows.actors.state().get("memory", {})
    carried = {f"{STATE} {n} {index}": one for n, tensors in memories.items() for index, one in enumerate(tensors)}
    return tensors_of(rows.buffer) | {name: tensor.clone() for name, tensor in carried.items()}
