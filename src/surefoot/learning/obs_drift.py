"""Drift of the observation statistics, which change after every update."""

from collections.abc import Mapping

import torch
from torch import Tensor

from surefoot.core.moments import Moments
from surefoot.core.records import Batch, Rollout
from surefoot.core.tree import tree_items
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy
from surefoot.telemetry import names


@torch.no_grad()
def absorb_obs(policy: Policy, batch: Batch, rollout: Rollout) -> dict[str, float]:
    """Merge the observations of a rollout into the policy's statistics; returns the drift in standard deviations.

    `within` is the distance between the means of the first and second half of the rollout, `across` that between the
    policy's means before and after; both are root mean squares over the elements. The first rollout has no `across`.
    """
    normalizers = policy.obs_normalizers()
    is_first = any(normalizer.count == 0 for normalizer in normalizers.values())
    before = {key: normalizer.shift.clone() for key, normalizer in normalizers.items()}
    policy.absorb(batch.obs, rollout.obs_moments)
    if not normalizers:
        return {}
    drift = {names.OBS_DRIFT_WITHIN: _distance(_change_within(rollout, normalizers), normalizers)}
    if not is_first:
        change = {key: normalizer.shift - before[key] for key, normalizer in normalizers.items()}
        drift[names.OBS_DRIFT_ACROSS] = _distance(change, normalizers)
    return drift


def _change_within(rollout: Rollout, normalizers: Mapping[str, RunningNormalizer]) -> dict[str, Tensor]:
    middle = len(rollout.reward) // 2
    halves = slice(None, middle), slice(middle, None)
    leaves = {key: leaf for key, leaf in tree_items(rollout.obs) if key in normalizers}
    first, second = (
        rollout.of_everyone({key: _mean(leaf[steps], rollout.valid[steps]) for key, leaf in leaves.items()})
        for steps in halves
    )
    return {key: second[key].mean.float() - first[key].mean.float() for key in leaves}


def _mean(leaf: Tensor, valid: Tensor) -> Moments:
    """Count and mean of the valid elements; the variance is not needed."""
    mean = leaf[valid].float().mean(0).double()
    return Moments(valid.sum().double(), mean, torch.zeros_like(mean))


def _distance(change: Mapping[str, Tensor], normalizers: Mapping[str, RunningNormalizer]) -> float:
    scaled = [(moved / normalizers[key].scale).flatten() for key, moved in change.items()]
    return float(torch.cat(scaled).square().mean().sqrt())
