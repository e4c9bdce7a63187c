"""The parts of two processes add up to the whole, also if one of them has nothing to learn from."""

from dataclasses import replace

import pytest
import torch

from surefoot.data.records import Rollout, Targets
from surefoot.data.specs import ArraySpec
from surefoot.learning.learner import Learner
from surefoot.rollout.samples import samples_of
from surefoot.rollout.shared import SharedRollout, SharedSamples
from tests.learning.both_learners import KNOBS, Case

BOX = ArraySpec("box", (3,), "float32")


def part_of(rollout: Rollout, own: slice) -> Rollout:
    """One process's rows, which know the small fields of all rows."""
    nothing = torch.zeros(*rollout.reward.shape, 0)
    whole = replace(rollout, obs=nothing, action=nothing, state=())
    named = ("obs", "action", "log_prob", "value", "reward", "terminated", "truncated", "final_value")
    columns = {name: getattr(rollout, name)[:, own].contiguous() for name in (*named, "episode_start", "valid")}
    state = tuple(part[:, own] for part in rollout.state)
    mine = vars(rollout) | columns | {"last_value": rollout.last_value[own], "state": state}
    return SharedRollout(**mine, whole=whole, own=own, merge=lambda moments: moments)


def gradient(learner: Learner, rollout: Rollout, targets: Targets) -> torch.Tensor:
    """The first gradient of an update, before any transform."""
    seen: list[torch.Tensor] = []

    def keep(flat: torch.Tensor, *measured: torch.Tensor) -> None:
        seen.append(flat.clone())

    learner.gradient._reduce = keep
    learner.learn(rollout, targets, KNOBS)
    return seen[0]


@pytest.mark.parametrize("learner", ["torch", "native"])
@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 3)])
def test_gradients_add_up_to_the_whole(learner: str, memory: str, rows: slice) -> None:
    case = Case(BOX, {"memory": memory}, {"advantage_norm": "minibatch", "epochs": 1}, {"returns": True})
    rollout, targets = case.rollout(case.build(learner).policy)
    valid = rollout.valid.clone()
    valid[:, 0] = False  # the first process may have nothing else
    rollout = replace(rollout, valid=valid, stats=replace(rollout.stats, num_steps=int(valid.sum())))
    whole = gradient(case.build(learner), rollout, targets)
    parts = [part_of(rollout, rows), part_of(rollout, slice(rows.stop, 4))]
    first, second = (gradient(case.build(learner), part, targets) for part in parts)
    torch.testing.assert_close(first + second, whole, rtol=1e-4, atol=1e-6)
    assert (first == 0).all() == (rows.stop == 1)
    assert (second != 0).any()


def test_all_processes_split_the_samples_alike() -> None:
    case = Case(BOX, {}, {}, {})
    rollout, targets = case.rollout(case.build("torch").policy)
    parts = [samples_of(part_of(rollout, own), targets, case.config("torch").ppo) for own in (slice(0, 3), slice(3, 4))]
    order = torch.randperm(64, generator=torch.Generator().manual_seed(1))
    for ours, theirs in zip(*(part.minibatches(24, order) for part in parts), strict=True):
        assert torch.equal(ours.whole, theirs.whole)
        assert len(ours) + len(theirs) == ours.size
    assert all(isinstance(part, SharedSamples) for part in parts)
