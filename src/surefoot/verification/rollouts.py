"""A native rollout against the reference's rollout of the same actions, field by field.

It must not depend on the number of threads or machines, nor a row on other rows (S13, docs/semantics.md), nor on other
policies that act in some rows.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.compose import build_collector
from surefoot.native import core
from surefoot.policies.native_plan import NativePlan
from surefoot.policies.policy import Policy
from surefoot.rollout.actors import Actors
from surefoot.rollout.collector import Collector
from surefoot.rollout.rows import Rows
from surefoot.verification.legs import STATE, Leg, path, stepwise, tensors_of
from surefoot.verification.outputs import EDGE, core_to_env
from surefoot.verification.recorded import RecordedPolicy
from surefoot.verification.report import Findings, digest, magnitude
from surefoot.verification.rounding import ROUNDING, slack
from surefoot.verification.subject import Subject, perturbed

SUMMATION = 1e-9
"""Relative error of float64 sums that are added in a different order."""
THREADS = (1, 2, 4, 7)
MORE_ROWS = 64
NUM_STEPS = 24
"""Length of each rollout; within two of them, every row ends an episode at least once."""
OTHERS = "other policies"
_FEW = 50
"""One action in so many may differ, where rounding decides between two."""
_ROUNDED = ("log_prob", "value", "prediction", "final_value", "last_value", STATE)
_LEARNERS = ("log_prob", "value", "prediction", "final_value", "valid", "actor", "metrics", STATE)
"""Fields that differ in rows of others: they have no log-probability, no value and no training."""


def compare_rollouts(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Compare everything that a rollout holds."""
    _compare_rounded(findings, "log-probs", "of the actions taken", ours, reference, "log_prob")
    _compare_rounded(findings, "values", "of every observation", ours, reference, "value")
    for name in ours.tensors:
        if name.startswith("obs"):
            key = name.removeprefix("obs").strip()
            findings.bits("env dynamics", f"observations {key}".strip(), ours.tensors[name], reference.tensors[name])
    if "action_mask" in ours.tensors:
        findings.bits("action masks", "of every step", ours.tensors["action_mask"], reference.tensors["action_mask"])
    findings.bits("rewards", "of every step", ours.tensors["reward"], reference.tensors["reward"])
    for flag in ("terminated", "truncated", "valid"):
        findings.bits("flags", flag, ours.tensors[flag], reference.tensors[flag])
    findings.bits("episode starts", "of every step", ours.tensors["episode_start"], reference.tensors["episode_start"])
    for name in ours.tensors:
        if name.startswith(STATE):
            _compare_rounded(findings, "memory", "kept and carried", ours, reference, name)
    _compare_bootstraps(findings, ours, reference)
    _compare_statistics(findings, ours, reference)


def _compare_bootstraps(findings: Findings, ours: Leg, reference: Leg) -> None:
    scale, tolerance = magnitude(reference.tensors["value"]), ROUNDING * slack(ours)
    for what, name in (("V of final observations", "final_value"), ("V after the last step", "last_value")):
        findings.within("bootstraps", what, ours.tensors[name], reference.tensors[name], tolerance, scale)
    cut_off = ours.tensors["truncated"] & ~ours.tensors["terminated"]
    stray = ours.tensors["final_value"].masked_fill(cut_off, 0)
    findings.count("bootstraps", "none elsewhere", int((stray != 0).sum()), stray.numel(), "are not 0")


def _compare_rounded(findings: Findings, name: str, compared: str, ours: Leg, reference: Leg, field: str) -> None:
    expected = reference.tensors[field]
    findings.within(name, compared, ours.tensors[field], expected, ROUNDING * slack(ours))


def _compare_statistics(findings: Findings, ours: Leg, reference: Leg) -> None:
    name, stats, expected = "episode statistics", ours.rollout.stats, reference.rollout.stats
    findings.bits(name, "lengths", *(torch.from_numpy(np.asarray(each.finished.lengths)) for each in (stats, expected)))
    given, returns = (np.asarray(each.finished.total_rewards) for each in (stats, expected))
    findings.within(name, "returns", given, returns, SUMMATION)
    counted = [torch.tensor([each.num_steps, each.obs_out_of_bounds, len(each.recent)]) for each in (stats, expected)]
    findings.bits(name, "counts", *counted)


def endings(legs: list[Leg]) -> tuple[int, int]:
    """Number of terminations and truncations in the legs."""
    return tuple(int(sum(leg.tensors[flag].sum() for leg in legs)) for flag in ("terminated", "truncated"))  # type: ignore[return-value]


def compare_threads(findings: Findings, subject: Subject) -> None:
    """Compare digests of rollouts with different numbers of threads."""
    digests = [digest(_collected(_short(subject, rollout__workers=threads))) for threads in THREADS]
    wrong = sum(other != digests[0] for other in digests[1:])
    what = f"{', '.join(map(str, THREADS[:-1]))} and {THREADS[-1]} threads"
    findings.count("thread independence", what, wrong, len(THREADS) - 1, "differ from that of 1 thread")


def compare_rows(findings: Findings, subject: Subject) -> None:
    """Compare the same rows in a small and in a large rollout."""
    few, many = _collected(_short(subject)), _collected(_short(subject, rollout__num_envs=MORE_ROWS))
    what = f"alone and among {MORE_ROWS} rows"
    for name, tensor in few.items():
        rows = many[name][: len(tensor)] if name == "last_value" else many[name][:, : tensor.shape[1]]
        findings.bits("row independence", what, _flat(tensor), _flat(rows))


def compare_machines(findings: Findings, subject: Subject) -> None:
    """Compare a rollout on the configured Ray cluster with one of this process."""
    short = _short(subject)
    engine = short.config.rollout.engine
    here, there = _collected(short), _collected(short, engine.model_dump(mode="json"))
    for name, tensor in here.items():
        findings.bits("machine independence", "on the cluster and in this process", _flat(tensor), _flat(there[name]))


def _short(subject: Subject, **changes: int) -> Subject:
    return subject.sized(rollout__num_steps=NUM_STEPS, **changes)


def _collected(subject: Subject, engine: Any = "native") -> dict[str, Tensor]:
    """The tensors of the second rollout, which begins in the middle of episodes."""
    with subject.opened(engine) as env:
        policy = subject.new_policy(env)
        collector = build_collector(subject.config, env, policy)
        for _ in range(2):
            collector.collect(policy)
        return tensors_of(collector.rows.buffer)


def _flat(tensor: Tensor) -> Tensor:
    return torch.flatten(tensor.contiguous())


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


def compare_others(findings: Findings, subject: Subject, plan: NativePlan, tolerance: float, engine: str) -> None:
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
            rollouts.append([_tensors_with_memories(collector, policy) for _ in range(2)])
    for alone, together in zip(*rollouts, strict=True):
        for name, whole in alone.items():
            if not name.startswith((*_LEARNERS, "last_value")):
                findings.bits(OTHERS, "a copy acts as the learner", together[name], whole)
            elif name in ("log_prob", "value"):
                findings.bits(OTHERS, "the learner in its own rows", together[name][:, ::2], whole[:, ::2])


def _compare_stepwise(findings: Findings, subject: Subject, plan: NativePlan, tolerance: float, engine: str) -> None:
    with subject.opened("native") as fast_env, subject.opened(engine) as slow_env:
        policy = subject.new_policy(fast_env)
        other = perturbed(deepcopy(policy), subject.config.train.seed + 1)
        to_env = core_to_env(core().Policy(plan.plain), policy.head)
        fast = build_collector(subject.config, fast_env, policy)
        slow = stepwise(subject.config, build_collector(subject.config, slow_env, policy).rows, policy)
        slow.rows.actors = recorded = RecordedActors(slow.rows)
        for collector in (fast, slow):
            collector.rows.actors.add("other", other)
        for rows, name in ((slice(1, None, 2), "other"), (slice(1, 2), ""), (slice(0, 1), "other")):
            for collector in (fast, slow):
                collector.rows.actors.assign(rows, name)
            ours = _tensors_with_memories(fast, policy)
            with path(is_readable=True):
                reference = _tensors_with_memories(slow, RecordedPolicy(policy, ours["action"], to_env))
            _compare_with_others(findings, ours, reference, tolerance)
        wrong, total = recorded.num_unlike, recorded.num_compared
        findings.count(OTHERS, "actions of others", wrong, total, "differ", allowed=total // _FEW)


def _compare_with_others(
    findings: Findings, ours: Mapping[str, Tensor], reference: Mapping[str, Tensor], tolerance: float
) -> None:
    for name, expected in reference.items():
        if name.startswith(_ROUNDED):
            findings.within(OTHERS, "log-probs, values, memory", ours[name], expected, tolerance)
        elif name != "metrics":
            findings.bits(OTHERS, "fields of the stepwise collector", ours[name], expected)


def _tensors_with_memories(collector: Collector, policy: Policy) -> dict[str, Tensor]:
    collector.collect(policy)
    rows = collector.rows
    memories: dict[str, Any] = {"": rows.memory} | rows.actors.state().get("memory", {})
    carried = {f"{STATE} {n} {index}": one for n, tensors in memories.items() for index, one in enumerate(tensors)}
    return tensors_of(rows.buffer) | {name: tensor.clone() for name, tensor in carried.items()}
