"""Named records with time-major axes: T steps, N rows (one agent of one env), A action elements, B samples."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from surefoot.core.moments import ObsMoments

Obs = Tensor | dict[str, Tensor]
State = tuple[Tensor, ...]
"""A policy's memory, one tensor [N, ...] a part; empty for policies without memory."""


@dataclass(frozen=True)
class Episode:
    """One finished episode, in raw rewards."""

    total_reward: float
    length: int
    metrics: dict[str, float] = field(default_factory=dict)
    """One number for each of the env's metrics; NaN for no value."""


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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class RolloutStats:
    """What a rollout tells about itself: `recent` rolls over the last 100 episodes."""

    num_steps: int
    finished: Episodes
    recent: tuple[Episode, ...]
    obs_out_of_bounds: int = 0
    worker_restarts: int = 0


@dataclass(frozen=True)
class Chunks:
    """How a rollout's steps are cut into sequences for training: as many of `length` as fit, and the rest."""

    num_steps: int
    length: int
    burn_in: int = 0

    def __len__(self) -> int:
        return -(-self.num_steps // self.length)

    @property
    def first_steps(self) -> list[int]:
        """Where each begins."""
        return list(range(0, self.num_steps, self.length))

    @property
    def state_steps(self) -> list[int]:
        """Where the memory is kept that each is trained with: at its first step, or where its burn-in begins."""
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
    valid: Tensor  # [T, N] bool, false for dead agents and reset rows
    last_value: Tensor  # [N] V of the observation after the last step
    action_mask: Tensor | None  # [T, N, choices] bool
    state: State  # [C, N, ...] each: before `chunks.state_steps`; empty without memory
    stats: RolloutStats
    obs_moments: ObsMoments | None = None
    """Of the valid observations, by key, where whoever collected them has them already."""
    chunks: Chunks | None = None
    """How it is cut into training sequences, for policies with memory."""
    extras: dict[str, Tensor] = field(default_factory=dict)
    """Fields that environments and policies add, by name, [T, N, ...]."""
    learned_extras: tuple[str, ...] = ()
    """Those that minibatches carry."""

    @property
    def num_steps(self) -> int:
        """Steps that really happened: invalid rows do not count."""
        return self.stats.num_steps


@dataclass(frozen=True)
class Targets:
    """Advantages and returns of a rollout `[T, N]`, in the units of the critic's values."""

    advantage: Tensor
    returns: Tensor
    metrics: dict[str, float] = field(default_factory=dict)
    """What the estimator has to tell, by full metric name."""


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
    """Of packed sequences: how many of them run at each step; `state` is one per sequence then."""
    extras: dict[str, Tensor] = field(default_factory=dict)
    """Fields that environments and policies add, by name."""

    def __len__(self) -> int:
        return self.action.shape[0]

    @property
    def inputs(self) -> tuple[Any, ...]:
        """What a policy takes."""
        inputs = (self.obs, self.state, self.episode_start, self.action_mask)
        return inputs if self.batch_sizes is None else (*inputs, self.batch_sizes)


class Knobs(Mapping[str, float]):
    """The numbers that schedules move, for one update: `knobs.lr`, `knobs["penalty.weight"]`."""

    def __init__(self, values: Mapping[str, float] | None = None, /, **named: float) -> None:
        self._values = {**(values or {}), **named}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __getattr__(self, name: str) -> float:
        if name.startswith("_") or name not in self._values:
            raise AttributeError(f"there is no knob '{name}'")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Learned:
    """What an update did: means over its minibatches, as plain numbers."""

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
    """Std of the critic's errors, as a share of the returns' root mean square."""
    skips: tuple[bool, ...] = ()
    """Of every gradient step, in order, whether it was skipped."""
    metrics: dict[str, float] = field(default_factory=dict)
    """What only some policies have to tell, by the name of the metric."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    step: int
    total: int
    iteration: int = 0

    @property
    def fraction(self) -> float:
        """Share of the run that is behind us, 0 to 1."""
        return min(1.0, self.step / self.total)

    @property
    def is_done(self) -> bool:
        """Whether the budget of steps is used up."""
        return self.step >= self.total

    def advance(self, num_steps: int) -> "Progress":
        """After one more iteration of `num_steps` steps."""
        return Progress(self.step + num_steps, self.total, self.iteration + 1)


@dataclass(frozen=True)
class IterationReport:
    """One iteration, for the hooks. `metrics` is what hooks add."""

    progress: Progress
    stats: RolloutStats
    learned: Learned
    rollout_s: float
    learn_s: float
    metrics: dict[str, float] = field(default_factory=dict)
