"""Drift of the observation statistics, which change after every update."""

from collections.abc import Mapping

import torch
from torch import Tensor

from surefoot.data.moments import Moments, ObsMoments
from surefoot.data.records import Batch, Rollout
from surefoot.data.tree import tree_items
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy
from surefoot.rollout.shared import merged_moments
from surefoot.telemetry import names

Normalizers = Mapping[str, RunningNormalizer]


@torch.no_grad()
def absorb_obs(policy: Policy, batch: Batch, rollout: Rollout) -> dict[str, float]:
    """Merge the observations of a rollout into the policy's statistics; returns the drift in standard deviations.

    `within` is the distance between the first and second half of the rollout, `across` that between the policy's
    statistics before and after: of the means, and of the standard deviations. All are root mean squares over the
    elements. The first rollout has no `across`.
    """
    normalizers = policy.obs_normalizers()
    is_first = any(normalizer.count == 0 for normalizer in normalizers.values())
    before = {key: (normalizer.shift.clone(), normalizer.scale.clone()) for key, normalizer in normalizers.items()}
    policy.absorb(batch.obs, rollout.obs_moments)
    if not normalizers:
        return {}
    first, second = (_moments_of(rollout, steps, normalizers) for steps in _halves(rollout))
    drift = {}
    if all(half[key].count > 0 for half in (first, second) for key in half):
        means = {key: second[key].mean - first[key].mean for key in first}
        stds = {key: second[key].var.sqrt() - first[key].var.sqrt() for key in first}
        drift[names.OBS_DRIFT_WITHIN] = _distance(means, normalizers)
        drift[names.OBS_STD_DRIFT_WITHIN] = _distance(stds, normalizers)
    if not is_first:
        means = {key: normalizer.shift - before[key][0] for key, normalizer in normalizers.items()}
        stds = {key: normalizer.scale - before[key][1] for key, normalizer in normalizers.items()}
        drift[names.OBS_DRIFT_ACROSS] = _distance(means, normalizers)
        drift[names.OBS_STD_DRIFT_ACROSS] = _distance(stds, normalizers)
    return drift


def _halves(rollout: Rollout) -> tuple[slice, slice]:
    middle = len(rollout.reward) // 2
    return slice(None, middle), slice(middle, None)


def _moments_of(rollout: Rollout, steps: slice, normalizers: Normalizers) -> ObsMoments:
    """Moments of the valid observations at some steps, relative to the policy's means."""
    valid = rollout.valid[steps]
    leaves = ((key, leaf) for key, leaf in tree_items(rollout.obs) if key in normalizers)
    moments = {key: _moments(leaf[steps][valid] - normalizers[key].shift) for key, leaf in leaves}
    return merged_moments(rollout, moments)


def _moments(centered: Tensor) -> Moments:
    """Much faster than `Moments.of`, and as exact for samples whose mean is small beside their spread."""
    if not len(centered):
        return Moments.of(centered)
    mean, square = centered.mean(0).double(), centered.square().mean(0).double()
    return Moments(mean.new_tensor(len(centered)), mean, (square - mean.square()).clamp(min=0))


def _distance(change: Mapping[str, Tensor], normalizers: Normalizers) -> float:
    scaled = [(moved / normalizers[key].scale).flatten() for key, moved in change.items()]
    return float(torch.cat(scaled).square().mean().sqrt())
