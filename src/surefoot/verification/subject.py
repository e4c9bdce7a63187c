"""The subject of a verification: a config reduced to a size that takes seconds, an env source and a policy."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch

from surefoot.compose import Specs, build_env, build_policy
from surefoot.envs.make import ENVPOOL, EnvSource, fixed_envs, is_instance
from surefoot.envs.protocol import VecEnv
from surefoot.policies.actor_critic import EncoderFactory
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config, nearest_divisor
from surefoot.settings.layers import rebuilt

ROWS, STEPS = 8, 64
"""Size of the rollouts that are compared; a few rows are enough, because rows are independent (and checked to be)."""
TIME_LIMITS = (23, 5)
"""Early time limits, so that truncations happen; the second is used if nearly all episodes end before the first."""
_PERTURBATION = 0.5


@dataclass(frozen=True)
class Subject:
    """A task, and how to build its parts any number of times from the same seed."""

    config: Config
    source: EnvSource | None = None
    policy: Policy | None = None
    encoder: EncoderFactory | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether an existing env was given, so that a second one cannot be made."""
        return is_instance(self.source)

    def sized(self, **changes: Any) -> "Subject":
        """A copy with small rollouts and few epochs; `changes` are settings named `section__key`."""
        rows = fixed_envs(self.source) if self.source is not None else None
        size: dict[str, Any] = {"rollout.num_envs": rows or ROWS, "rollout.num_steps": STEPS, "ppo.epochs": 2}
        size |= {"ppo.target_kl": None, "rollout.workers": 0, "rollout.groups": 1, "train.threads": 1}
        size |= {"train.device": "cpu"}
        size |= {name.replace("__", "."): value for name, value in changes.items()}
        whole = size["rollout.num_envs"] * size["rollout.num_steps"]
        size["ppo.batch_size"] = nearest_divisor(whole, max(1, whole // 4))
        if (self.config.ppo.micro_batch_size or 0) > size["ppo.batch_size"]:
            size["ppo.micro_batch_size"] = size["ppo.batch_size"]
        return replace(self, config=rebuilt(self.config, size))

    def time_limit(self, early: int) -> int:
        """The given time limit, or the configured one if that is earlier."""
        return min(self.config.env.max_episode_steps or early, early)

    def new_policy(self, env: VecEnv) -> Policy:
        """A copy of the given policy, or the configured one, with its weights moved away from their initial values."""
        if self.policy is not None:
            policy = deepcopy(self.policy)
        else:
            policy = build_policy(self.config, Specs(env.obs_spec, env.action_spec), self.encoder)
        return perturbed(policy, self.config.train.seed)

    @contextmanager
    def opened(self, engine: str | dict[str, Any]) -> Iterator[VecEnv]:
        """New envs in an engine, with its settings or without; an existing env is reused and not closed."""
        steps_itself = self.is_fixed or (self.source is None and self.config.env.id.startswith(ENVPOOL))
        settings = {"rollout.engine": "auto" if steps_itself else engine}
        config = rebuilt(self.config, settings)
        env = build_env(config, self.source)
        try:
            yield env
        finally:
            if not self.is_fixed:
                env.close()


@torch.no_grad()
def perturbed(policy: Policy, seed: int) -> Policy:
    """Move the weights: initial ones hide errors, because biases are 0, stds equal and heads nearly 0."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in policy.parameters():
        fan_in = parameter[0].numel() if parameter.dim() > 1 else 16
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.add_(noise.to(parameter) * (_PERTURBATION / fan_in**0.5))
    return policy
