"""Named records with time-major axes: T steps, N rows (one agent of one env), A action elements, B samples."""

import math
from collections.abc import ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.moments import ObsMoments, normalized

Obs = Tensor | dict[str, Tensor]
State = tuple[Tensor, ...]
"""Recurrent state of a policy, tensors [N, ...]; empty for policies without memory."""


@dataclass(frozen=True)
class Episode:
    """One finished episode, in raw rewards."""

    total_reward: float
    length: int
    metrics: dict[str, float] = field(default_factory=dict)
    """One number per metric of the env; NaN means no value."""


@dataclass(frozen=True, eq=False)
class Episodes(Sequence[Episode]):
    """Finished episodes in columns: a rollout of thousands of rows finishes tens of thousands of them."""

    total_rewards: NDArray[np.float64]
    lengths: NDArray[np.int64]
    metrics: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            columns = {name: column[index] for name, column in self.metrics.items()}
            return Episodes(self.total_rewards[index], self.lengths[index], columns)
        metrics = {name: float(column[index]) for name, column in self.metrics.items()}
        return Episode(float(self.total_rewards[index]), int(self.lengths[index]), metrics)

    def __iter__(self) -> Iterator[Episode]:
        numbers = self.total_rewards.tolist(), self.lengths.tolist()
        if not self.metrics:
            return map(Episode, *numbers)
        rows = zip(*(column.tolist() for column in self.metrics.values()), strict=True)
        return map(Episode, *numbers, (dict(zip(self.metrics, row, strict=True)) for row in rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class RolloutStats:
    """Statistics of a rollout; `recent` holds the last 100 episodes."""

    num_steps: int
    finished: Episodes
    recent: tuple[Episode, ...]
    obs_out_of_bounds: int = 0
    worker_restarts: int = 0


@dataclass(frozen=True)
class Chunks:
    """How a rollout is split into training sequences: as many of `length` as fit, then the remainder."""

    num_steps: int
    length: int
    burn_in: int = 0

    def __len__(self) -> int:
        return -(-self.num_steps // self.length)

    @property
    def first_steps(self) -> list[int]:
        """First step of each sequence."""
        return list(range(0, self.num_steps, self.length))

    @property
    def state_steps(self) -> list[int]:
        """Steps whose recurrent state is stored: the first step of each sequence, or the start of its burn-in."""
        return [max(0, first - self.burn_in) for first in self.first_steps]


@dataclass(frozen=True)
class Rollout:
    """T steps of N rows. `action` is as sampled, before clipping or rescaling; `value` is in raw units."""

    obs: Obs  # [T, N, ...]
    action: Tensor  # [T, N, ...]
    log_prob: Tensor  # [T, N]
    value: Tensor  # [T, N]
    reward: Tensor  # [T, N]
    terminated: Tensor  # [T, N] bool, flag of the step itself
    truncated: Tensor  # [T, N] bool, flag of the step itself
    final_value: Tensor  # [T, N] V(final_obs) where the step was truncated, else 0
    episode_start: Tensor  # [T, N] bool, true at the first step of an episode
    valid: Tensor  # [T, N] bool, false for dead agents and auto-reset steps
    last_value: Tensor  # [N] V of the observation after the last step
    action_mask: Tensor | None  # [T, N, choices] bool
    state: State  # [C, N, ...] each: before `chunks.state_steps`; empty without memory
    stats: RolloutStats
    obs_moments: ObsMoments | None = None
    """Moments of the valid observations, by key, if the collector has already computed them."""
    chunks: Chunks | None = None
    """How the rollout is split into training sequences, for recurrent policies."""
    extras: dict[str, Tensor] = field(default_factory=dict)
    """Fields that environments and policies add, by name, [T, N, ...]."""
    learned_extras: tuple[str, ...] = ()
    """Names of the extras that minibatches include."""
    others: Tensor | None = None
    """[T, N] bool, true for steps of the env in which another policy acted, which are not valid; None: nowhere."""
    unread_obs: frozenset[str] = frozenset()
    """Keys of a Dict observation that no network reads; minibatches do not include them."""

    @property
    def num_steps(self) -> int:
        """Number of valid steps."""
        return self.stats.num_steps


@dataclass(frozen=True)
class Targets:
    """Advantages and returns of a rollout `[T, N]`, in the units of the critic's values."""

    advantage: Tensor
    returns: Tensor
    metrics: dict[str, float] = field(default_factory=dict)
    """Metrics of the estimator, by full metric name."""


@dataclass(frozen=True)
class Batch:
    """Samples for the learner, one axis B; only valid ones."""

    obs: Obs
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    returns: Tensor
    episode_start: Tensor
    action_mask: Tensor | None
    state: State
    batch_sizes: Tensor | None = None
    """For packed sequences: the number of active sequences per step; `state` then has one entry per sequence."""
    extras: dict[str, Tensor] = field(default_factory=dict)
    """Fields that environments and policies add, by name."""
    weight: Tensor | None = None
    """[B] weight of each sample in terms that do not learn from all rows: 0 where another policy acted, and 1 on
    average; None: all weigh 1."""

    def __len__(self) -> int:
        return self.action.shape[0]

    @property
    def size(self) -> int:
        """Number of samples of the minibatch."""
        return len(self)

    @property
    def is_own(self) -> Tensor | None:
        """[B] whether the learning policy acted; None: everywhere."""
        return None if self.weight is None else self.weight > 0

    def share_of(self, piece: "Batch") -> float:
        """The share of a piece in the minibatch."""
        return len(piece) / self.size

    @property
    def normalized_advantage(self) -> Tensor:
        """Advantages with zero mean and unit standard deviation over the minibatch."""
        return normalized(self.advantage, self.is_own)

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The arguments of a policy."""
        inputs = (self.obs, self.state, self.episode_start, self.action_mask)
        return inputs if self.batch_sizes is None else (*inputs, self.batch_sizes)


class Knobs(Mapping[str, float]):
    """The scheduled numbers of one update: `knobs.lr`, `knobs["penalty.weight"]`."""

    def __init__(self, values: Mapping[str, float] | None = None, /, **named: float) -> None:
        self._values = {**(values or {}), **named}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __getattr__(self, name: str) -> float:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"unknown knob '{name}'")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> ItemsView[str, float]:
        return self._values.items()  # much faster than the inherited view


@dataclass(frozen=True)
class Learned:
    """Metrics of an update: means over its minibatches."""

    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    grad_norm: float
    explained_variance: float
    epochs: int
    skipped_steps: int
    lr: float
    clip: float
    entropy_coef: float
    std: float | None = None
    value_error: float = math.nan
    """Standard deviation of the critic's errors, relative to the root mean square of the returns."""
    skips: tuple[bool, ...] = ()
    """Whether each gradient step was skipped, in order."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Additional metrics of some policies, by metric name."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    step: int
    total: int
    iteration: int = 0

    @property
    def fraction(self) -> float:
        """Completed fraction of the run, from 0 to 1."""
        return min(1.0, self.step / self.total)

    @property
    def is_done(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.total

    def advance(self, num_steps: int) -> "Progress":
        """The progress after another iteration of `num_steps` steps."""
        return Progress(self.step + num_steps, self.total, self.iteration + 1)


@dataclass(frozen=True)
class IterationReport:
    """One iteration, passed to the hooks. Hooks can add to `metrics`."""

    progress: Progress
    stats: RolloutStats
    learned: Learned
    rollout_s: float
    learn_s: float
    metrics: dict[str, float] = field(default_factory=dict)
