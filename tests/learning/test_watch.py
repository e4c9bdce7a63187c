"""What the summary of an update says beyond its losses."""

import math

import pytest
import torch

from surefoot.data.records import Batch, Knobs
from surefoot.learning.watch import CLIP_FRACTION, ENTROPY_LOSS, GRAD_NORM, KL, POLICY_LOSS, SKIPPED, VALUE_LOSS, Watch
from surefoot.policies.policy import Policy
from surefoot.rollout.minibatches import FlatSamples

KNOBS = Knobs(lr=0.1, clip=0.2, entropy_coef=0.0)
WATCHED = (POLICY_LOSS, VALUE_LOSS, ENTROPY_LOSS, KL, CLIP_FRACTION, GRAD_NORM)


class SilentHead(torch.nn.Module):
    """A head without a std."""

    def mean_std(self, some: object) -> None:
        return None


def batch_of(value: list[float], returns: list[float]) -> Batch:
    count = torch.zeros(len(value))
    return Batch(count, count, count, torch.tensor(value), count, torch.tensor(returns), count, None, ())


def summary(value: list[float], returns: list[float], skips: list[list[float]]) -> object:
    watch = Watch()
    for epoch in skips:
        for skip in epoch:
            watch.add(dict.fromkeys(WATCHED, torch.zeros(())) | {SKIPPED: torch.tensor(skip)}, 1 / len(epoch))
        watch.end_epoch()
    policy = Policy()
    policy.head = SilentHead()
    return watch.measured().summary(FlatSamples(batch_of(value, returns)), policy, KNOBS, {})


def test_the_value_error_is_the_spread_of_the_errors_as_a_share_of_the_returns():
    """Errors 1 and -1, returns 3 and 4: 1 / sqrt(12.5)."""
    learned = summary([2.0, 5.0], [3.0, 4.0], [[0.0]])
    assert learned.value_error == pytest.approx(1 / math.sqrt(12.5))


def test_nearly_constant_returns_are_nearly_right_whatever_explained_variance_says():
    learned = summary([49.9, 50.1, 50.0], [50.0, 50.0001, 50.0], [[0.0]])
    assert learned.explained_variance < -100
    assert learned.value_error < 0.01


def test_skips_are_in_the_order_of_the_steps():
    learned = summary([1.0, 2.0], [1.0, 2.0], [[0.0, 0.5], [0.25, 0.0]])
    assert learned.skips == (False, True, True, False)
    assert learned.skipped_steps == 2
