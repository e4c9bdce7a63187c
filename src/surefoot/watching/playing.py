"""Plays the episodes of an evaluation one after another, so that each can be seen whole."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from surefoot.envs.protocol import new_slot
from surefoot.envs.protocol.checks import check_step
from surefoot.envs.protocol.shard import Shard
from surefoot.evaluation.evaluate import Player, shares_of
from surefoot.policies.policy import Policy
from surefoot.watching.camera import Picture
from surefoot.watching.stage import Stage

MOST_STEPS = 10_000
"""An episode is cut off here unless the caller says otherwise: some envs have no end."""


@dataclass(frozen=True)
class Program:
    """What is to be played; a sampled policy draws its actions as in an evaluation with the same seed."""

    episodes: int = 1
    seed: int = 0
    is_deterministic: bool = True
    most_steps: int = MOST_STEPS


@dataclass(frozen=True)
class Moment:
    """A step of an episode, or its beginning (step 0)."""

    episode: int
    """From 0."""
    step: int
    total_reward: float
    """So far; for several agents the mean over those that have acted."""
    is_last: bool
    is_cut: bool
    """Whether this step is the last one only because of the limit."""
    picture: Picture | None
    """None for steps that are left out, and in a window."""


@torch.no_grad()
def play(policy: Policy, stage: Stage, program: Program, rows: int) -> Iterator[Moment]:
    """The episodes that an evaluation with `rows` envs plays, in its order."""
    envs = 1 if stage.is_given else min(rows, program.episodes)
    episode = 0
    for number, share in enumerate(shares_of(program.episodes, envs)):
        part = _Part(policy, stage, program, number, envs)
        for _ in range(share):
            yield from part.episode(episode)
            episode += 1


class _Part:
    """One env of an evaluation with its rows.

    The policy computes all rows of the evaluation, because matrix products of another size round differently. The rows
    of the other envs stay empty.
    """

    def __init__(self, policy: Policy, stage: Stage, program: Program, number: int, envs: int) -> None:
        self._camera, self._limit = stage.camera, program.most_steps
        self._shard: Shard = stage.shard(number, program.seed)
        own = self._shard.num_rows
        self._rows = slice(number * own, (number + 1) * own)
        shard = self._shard
        self._slot = new_slot(envs * own, shard.obs_spec, shard.mask_size, len(shard.metrics))
        self._own = self._slot.of_rows(self._rows)
        self._player = Player(policy, envs * own, None if program.is_deterministic else program.seed)
        self._start = torch.ones(envs * own, dtype=torch.bool)
        self._reset()

    def episode(self, number: int) -> Iterator[Moment]:
        """One episode from its beginning to its end, or to the limit."""
        own, total = self._own, np.zeros(self._shard.num_rows)
        has_played = np.zeros(self._shard.num_rows, dtype=bool)
        yield Moment(number, 0, 0.0, False, False, self._camera.look())
        step, is_last = 0, False
        while not is_last:
            before = self._camera.episodes
            actions = self._player.act(self._slot, self._start)
            self._shard.step(actions[self._rows], own)
            check_step(self._shard, own, self._player.step)
            total += np.where(own.valid, own.reward, 0)
            has_played |= own.valid
            self._start = torch.from_numpy(self._slot.ended | ~self._slot.valid)
            step += 1
            is_over = self._camera.episodes > before
            is_last = is_over or step >= self._limit
            picture = self._camera.picture()
            if is_last and picture is None:
                picture = self._camera.look()
            mean = float(total[has_played].mean()) if has_played.any() else 0.0
            yield Moment(number, step, mean, is_last, is_last and not is_over, picture)
        if not is_over:
            self._reset()

    def _reset(self) -> None:
        """Begin from the seed of the evaluation, or after a cut from another one."""
        self._shard.reset(self._own, self._player.step)
        check_step(self._shard, self._own, self._player.step)
        self._camera.picture()
        self._start[:] = True
