"""A native rollout against the reference's rollout of the same actions, field by field."""

import numpy as np
import torch
from torch import Tensor

from surefoot.data.records import Episodes
from surefoot.verification.differences import magnitude
from surefoot.verification.legs import STATE, Leg
from surefoot.verification.report import Findings
from surefoot.verification.rounding import ROUNDING, slack

SUMMATION = 1e-9
"""Relative error of float64 sums that are added in a different order."""


def compare_rollouts(findings: Findings, ours: Leg, reference: Leg) -> None:
    """Compare everything that a rollout holds."""
    _compare_rounded(findings, "log-probs", "of the actions taken", ours, reference, "log_prob")
    _compare_rounded(findings, "values", "of every observation", ours, reference, "value")
    for name in ours.tensors:
        if name.startswith("obs"):
            part = name.removeprefix("obs").strip()
            findings.bits("env dynamics", f"observations {part}".strip(), ours.tensors[name], reference.tensors[name])
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
    findings.within(name, compared, ours.tensors[field], expected, ROUNDING * slack(ours), magnitude(expected))


def _compare_statistics(findings: Findings, ours: Leg, reference: Leg) -> None:
    name, stats, expected = "episode statistics", ours.rollout.stats, reference.rollout.stats
    findings.bits(name, "lengths", _lengths(stats.finished), _lengths(expected.finished))
    returns = torch.from_numpy(np.asarray(expected.finished.total_rewards))
    given = torch.from_numpy(np.asarray(stats.finished.total_rewards))
    findings.within(name, "returns", given, returns, SUMMATION, magnitude(returns))
    counted = [torch.tensor([each.num_steps, each.obs_out_of_bounds, len(each.recent)]) for each in (stats, expected)]
    findings.bits(name, "counts", *counted)


def _lengths(episodes: Episodes) -> Tensor:
    return torch.from_numpy(np.asarray(episodes.lengths))


def endings(legs: list[Leg]) -> tuple[int, int]:
    """Number of terminations and truncations in the legs."""
    return tuple(int(sum(leg.tensors[flag].sum() for leg in legs)) for flag in ("terminated", "truncated"))  # type: ignore[return-value]
