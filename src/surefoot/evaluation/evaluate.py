"""Evaluation: complete episodes from fixed seeds, deterministic or sampled, with a confidence interval."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.core.errors import EnvError
from surefoot.core.philox import Stream, uniforms, words
from surefoot.core.records import Obs, State
from surefoot.core.tree import tree_map
from surefoot.envs.protocol import VecEnv, slot_for, step_all
from surefoot.envs.protocol.steps import check_step
from surefoot.policies.policy import Policy
from surefoot.rollout.episode_metrics import EpisodeMetrics, mean_of_known

PATIENCE = 100_000
"""Evaluation fails after this many steps without a finished episode."""
_RESAMPLES = 1000

Perturb = Callable[[Obs, State, Tensor, Tensor | None], Obs]
"""Changes what the policy observes: from (obs, state, start, action mask), exactly what it is about to be given.

It runs without gradients; one that needs them enables them itself (`torch.enable_grad`).
"""


@dataclass(frozen=True)
class Evaluation:
    """Rewards, lengths and metrics of the episodes, with summary statistics."""

    rewards: tuple[float, ...]
    lengths: tuple[int, ...]
    metrics: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Metrics of the env by name, one number per episode; NaN means no value."""

    def mean_metric(self, name: str) -> float | None:
        """Mean of a metric over the episodes that have a value; None if there are none."""
        return mean_of_known(self.metrics[name])

    @property
    def mean_reward(self) -> float:
        """Mean total reward per episode."""
        return float(np.mean(self.rewards))

    @property
    def std_reward(self) -> float:
        """Standard deviation of the total rewards."""
        return float(np.std(self.rewards))

    @property
    def mean_ep_length(self) -> float:
        """Mean episode length."""
        return float(np.mean(self.lengths))

    def interval(self) -> tuple[float, float]:
        """95% bootstrap confidence interval of the mean reward."""
        count = len(self.rewards)
        drawn = words(0, np.arange(_RESAMPLES), [0], count, Stream.BOOTSTRAP)[:, 0] % np.uint64(count)
        means = np.asarray(self.rewards)[drawn.astype(np.int64)].mean(axis=1)
        low, high = np.percentile(means, [2.5, 97.5])
        return float(low), float(high)

    def to_json(self) -> dict[str, Any]:
        """The evaluation as JSON."""
        return {
            "mean_reward": self.mean_reward,
            "std_reward": self.std_reward,
            "mean_ep_length": self.mean_ep_length,
            "episodes": len(self.rewards),
            "confidence_interval": list(self.interval()),
            "rewards": list(self.rewards),
            "lengths": list(self.lengths),
            "metrics": {
                name: {"mean": self.mean_metric(name), "values": [None if math.isnan(v) else v for v in values]}
                for name, values in self.metrics.items()
            },
        }


@torch.no_grad()
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
    the observations that the policy sees, and so its recurrent state; not the envs.
    """
    rows = env.num_rows
    shares = np.array([episodes // rows + (row < episodes % rows) for row in range(rows)])
    slot = slot_for(env)
    env.reset(slot)
    check_step(env, slot, 0)
    state, start = policy.initial_state(rows), torch.ones(rows, dtype=torch.bool)
    reward, length = np.zeros(rows), np.zeros(rows, dtype=np.int64)
    metrics = EpisodeMetrics(env.metrics, rows)
    finished: list[tuple[int, float, int, list[float]]] = []
    step = quiet_since = 0
    has_played = np.zeros(rows, dtype=bool)
    while (shares > 0).any() and not (has_played.any() and (shares[has_played] <= 0).all()):
        obs, mask = _tensors(slot.obs), _mask(slot.action_mask)
        if perturb is not None:
            obs = perturb(obs, state, start, mask)
        output = policy(obs, state, start, mask)
        state = output.state
        if deterministic:
            action = output.distribution.mode()
        else:
            drawn = uniforms(seed, [step], np.arange(rows), policy.head.noise_size, Stream.EVALUATION)
            action = output.distribution.sample(policy.head.noise(torch.from_numpy(drawn))[0])
        step_all(env, policy.head.to_env(action).numpy(), slot)
        step += 1
        check_step(env, slot, step)
        reward += np.where(slot.valid, slot.reward, 0)
        length += slot.valid
        has_played |= slot.valid
        of_ended = iter(metrics.absorb(slot.metrics[None], slot.ended[None], slot.valid[None]).tolist())
        for row in np.flatnonzero(slot.ended):
            of_episode = next(of_ended) if slot.valid[row] else []
            if shares[row] > 0 and slot.valid[row]:  # a failed env cuts off its episode
                finished.append((int(row), float(reward[row]), int(length[row]), of_episode))
                shares[row] -= 1
                quiet_since = step
            reward[row], length[row] = 0.0, 0
        if step - quiet_since > PATIENCE:
            raise EnvError(f"no episode ended within {PATIENCE} steps; set env.max_episode_steps to evaluate this env")
        start = torch.from_numpy(slot.ended | ~slot.valid)
    finished.sort(key=lambda episode: episode[0])
    return Evaluation(
        tuple(item[1] for item in finished),
        tuple(item[2] for item in finished),
        {name: tuple(item[3][place] for item in finished) for place, name in enumerate(metrics.names)},
    )


def _tensors(obs: Any) -> Obs:
    # A copy: the env writes the next observation into the same memory, and a policy may keep a reference.
    tensors: Obs = tree_map(torch.tensor, obs)
    return tensors


def _mask(mask: NDArray[np.bool_] | None) -> Tensor | None:
    return None if mask is None else torch.from_numpy(mask)
