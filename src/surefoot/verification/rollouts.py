"""A native rollout against the reference's rollout of the same actions, field by field.

It must not depend on the number of threads or machines, nor a row on other rows (S13, docs/semantics.md).
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.compose import build_collector
from surefoot.verification.legs import STATE, Leg, tensors_of
from surefoot.verification.report import Findings, digest, magnitude
from surefoot.verification.rounding import ROUNDING, slack
from surefoot.verification.subject import Subject

SUMMATION = 1e-9
"""Relative error of float64 sums that are added in a different order."""
THREADS = (1, 2, 4, 7)
MORE_ROWS = 64
NUM_STEPS = 24
"""Length of each rollout; within two of them, every row ends an episode at least once."""


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
