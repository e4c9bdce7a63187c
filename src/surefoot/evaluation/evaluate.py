"""Evaluation: complete episodes from fixed seeds, deterministic or sampled."""

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import Obs, State
from surefoot.data.tree import tree_items, tree_map
from surefoot.envs.protocol import SUCCESS_RATE, Slot, VecEnv, slot_for, step_all
from surefoot.envs.protocol.checks import check_step
from surefoot.errors import EnvError
from surefoot.evaluation.evaluation import Evaluation
from surefoot.machine.torch_defaults import torch_threads
from surefoot.philox import Stream, uniforms
from surefoot.policies.policy import Policy
from surefoot.rollout.episode_metrics import EpisodeMetrics

Perturb = Callable[[Obs, State, Tensor, Tensor | None], Obs]
"""Changes what the policy observes: from (obs, state, start, action mask), exactly what it is about to be given.

It runs without gradients; one that needs them enables them itself (`torch.enable_grad`).
"""
PATIENCE = 100_000
"""Evaluation fails after this many steps without a finished episode."""
FEWEST = 3
"""Fewest episodes that are called identical: two may be equal by chance."""


class Player:
    """The policy with its recurrent state; samples with counted randomness if it has a seed."""

    def __init__(self, policy: Policy, rows: int, seed: int | None, perturb: Perturb | None = None) -> None:
        self._policy, self._rows, self._seed, self._perturb = policy, rows, seed, perturb
        self._state = policy.initial_state(rows)
        self.step = 0

    def act(self, slot: Slot, start: Tensor) -> NDArray[Any]:
        """Env actions for the observations in the slot; `start` marks rows at the beginning of an episode."""
        obs, mask = _tensors(slot.obs), _mask(slot.action_mask)
        if self._perturb is not None:
            obs = self._perturb(obs, self._state, start, mask)
        output = self._policy(obs, self._state, start, mask)
        action = output.distribution.mode() if self._seed is None else output.distribution.sample(self._noise())
        self._state = output.state
        self.step += 1
        env_action: NDArray[Any] = self._policy.head.to_env(action).numpy()
        return env_action

    def _noise(self) -> Tensor:
        assert self._seed is not None
        head = self._policy.head
        drawn = uniforms(self._seed, [self.step], np.arange(self._rows), head.noise_size, Stream.EVALUATION)
        return head.noise(torch.from_numpy(drawn))[0]


def _tensors(obs: Any) -> Obs:
    # A copy: the env writes the next observation into the same memory, and a policy may keep a reference.
    tensors: Obs = tree_map(torch.tensor, obs)
    return tensors


def _mask(mask: NDArray[np.bool_] | None) -> Tensor | None:
    return None if mask is None else torch.from_numpy(mask)


@torch.no_grad()
@torch_threads(1)
def evaluate(
    policy: Policy,
    env: VecEnv,
    episodes: int,
    seed: int,
    deterministic: bool = True,
    perturb: Perturb | None = None,
) -> Evaluation:
    """Run `episodes` episodes. Each row plays an equal share, so that short episodes are not overrepresented.

    A row that stays inactive while all others finish, such as an agent that never joins, is skipped. `perturb` changes
    the observations that the policy sees, and so its recurrent state; not the envs. One thread computes the policy: for
    a few rows, several are not faster, and much slower where other processes keep the cores busy.
    """
    slot = slot_for(env)
    env.reset(slot)
    check_step(env, slot, 0)
    player = Player(policy, env.num_rows, None if deterministic else seed, perturb)
    played = _Played(env, slot, episodes)
    start = torch.ones(env.num_rows, dtype=torch.bool)
    while not played.are_enough:
        step_all(env, player.act(slot, start), slot)
        check_step(env, slot, player.step)
        played.absorb(slot)
        start = torch.from_numpy(slot.ended | ~slot.valid)
    return played.evaluation()


def shares_of(episodes: int, players: int) -> list[int]:
    """How many of the episodes each player plays."""
    return [episodes // players + (player < episodes % players) for player in range(players)]


class _Played:
    """Collects finished episodes until each row has played its share."""

    def __init__(self, env: VecEnv, first: Slot, episodes: int) -> None:
        rows = env.num_rows
        self._shares = np.array(shares_of(episodes, rows))
        self._reward, self._length = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        self._has_played = np.zeros(rows, dtype=bool)
        self._metrics = EpisodeMetrics(env.metrics, rows)
        self._finished: list[tuple[int, float, int, list[float]]] = []
        self._quiet_steps = 0
        self._repetition = Repetition(first)

    @property
    def are_enough(self) -> bool:
        """Whether all rows, or all that are active, have played their share."""
        is_done, active = self._shares <= 0, self._has_played
        return bool(is_done.all() or (active.any() and is_done[active].all()))

    def absorb(self, slot: Slot) -> None:
        """Add a step of all rows; an error if no episode ended for too long."""
        self._reward += np.where(slot.valid, slot.reward, 0)
        self._length += slot.valid
        self._has_played |= slot.valid
        self._repetition.absorb(slot)
        self._quiet_steps += 1
        of_ended = iter(self._metrics.absorb(slot.metrics[None], slot.ended[None], slot.valid[None]).tolist())
        for row in map(int, np.flatnonzero(slot.ended)):
            if slot.valid[row]:  # a failed env cuts off its episode
                self._finish(row, next(of_ended))
            self._reward[row], self._length[row] = 0.0, 0
        if self._quiet_steps > PATIENCE:
            raise EnvError(
                f"no episode ended within {PATIENCE} steps; set env.max_episode_steps to evaluate this env, or wrap an"
                " env that you pass yourself in gymnasium.wrappers.TimeLimit"
            )

    def _finish(self, row: int, metrics: list[float]) -> None:
        if self._shares[row] > 0:
            self._finished.append((row, float(self._reward[row]), int(self._length[row]), metrics))
            self._shares[row] -= 1
            self._quiet_steps = 0

    def evaluation(self) -> Evaluation:
        """The episodes, sorted by row."""
        finished = sorted(self._finished, key=lambda episode: episode[0])
        columns = zip(*(metrics for *_, metrics in finished), strict=True)
        metrics = dict(zip(self._metrics.names, columns, strict=True))
        return Evaluation(
            tuple(reward for _, reward, _, _ in finished),
            tuple(length for _, _, length, _ in finished),
            {name: values for name, values in metrics.items() if name != SUCCESS_RATE or not np.isnan(values).all()},
            are_identical=len(finished) >= FEWEST and self._repetition.is_possible,
        )


class Repetition:
    """Compares checksums of the observations and rewards of all episodes; free of cost once two of them differ."""

    def __init__(self, first: Slot) -> None:
        self._traces = [0] * len(first.reward)
        self._finished = set[int]()
        self.is_possible = True
        """Whether no two episodes have differed so far."""
        self._observe(first)

    def absorb(self, slot: Slot) -> None:
        """Add a step of all rows."""
        if not self.is_possible:
            return
        for row in range(len(self._traces)):
            if not slot.valid[row]:
                self._traces[row] = 0  # an episode begins with this observation
                continue
            self._traces[row] = crc32(slot.reward[row].tobytes(), self._traces[row])
            if slot.ended[row]:
                self._finished.add(self._traces[row])
                self._traces[row] = 0
        self._observe(slot)

    def _observe(self, slot: Slot) -> None:
        for _, leaf in tree_items(slot.obs):
            self._traces = [crc32(leaf[row].tobytes(), trace) for row, trace in enumerate(self._traces)]
        # Until the first episode ends, all rows are at the same step.
        self.is_possible = len(self._finished or set(self._traces)) == 1
