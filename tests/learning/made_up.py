"""Rollouts made up for any spaces, and both learners with the same weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import Specs, build_learner, build_policy, learner_plan
from surefoot.data.records import Chunks, Episodes, Knobs, Learned, Rollout, RolloutStats, Targets
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_map
from surefoot.learning.devices import execution_of
from surefoot.learning.learner import Learner
from surefoot.learning.native_learner import LearnerPlan
from surefoot.learning.terms import Objective
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config

STEPS, ROWS = 24, 6
SEVEN = ArraySpec("box", (7,), "float32")
THREE_ACTIONS = ArraySpec("box", (3,), "float32", low=-1.0, high=1.0)
CHOICES = ArraySpec("discrete", (), "int64", sizes=(5,), start=(0,))
SETTINGS: dict[str, Any] = {
    "env.id": "made up",
    "rollout.num_envs": ROWS,
    "rollout.num_steps": STEPS,
    "ppo.batch_size": 48,
    "ppo.epochs": 2,
    "ppo.entropy_coef": 0.01,
    "policy.hidden": (16, 12),
    "train.seed": 3,
}


class Side:
    """A policy with its learner."""

    def __init__(self, config: Config, specs: Specs, prepare: Callable[[Policy], object] = lambda policy: None) -> None:
        self.policy = moved(build_policy(config, specs))
        prepare(self.policy)
        objective = Objective.of(config.ppo)
        plan = learner_plan(config, self.policy, objective)
        self.learner: Learner = build_learner(config, self.policy, objective, plan)
        self.gradient = self.learner.gradient
        self._execution = execution_of(config, self.policy, False, isinstance(plan, LearnerPlan))

    def learn(self, rollout: Rollout, targets: Targets, knobs: Knobs) -> Learned:
        with self._execution.learning():
            return self.learner.learn(rollout, targets, knobs)

    def weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.policy.state_dict().items()}


def config_of(learner: str, **settings: Any) -> Config:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return build_config({}, SETTINGS | named | {"train.learner": learner})


def knobs_of(config: Config) -> Knobs:
    ppo = config.ppo
    return Knobs(lr=1e-3, clip=0.2, entropy_coef=ppo.entropy_coef, value_coef=ppo.value_coef)


@torch.no_grad()
def moved(policy: Policy) -> Policy:
    """Away from the initial weights, which hide errors: biases are 0, and heads nearly 0."""
    generator = torch.Generator().manual_seed(1)
    for parameter in policy.parameters():
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return policy


@torch.no_grad()
def made_rollout(
    policy: Policy,
    obs: ObsSpec,
    action: ArraySpec,
    share_valid: float = 1.0,
    masked: bool = False,
    length: int = 8,
    burn_in: int = 0,
) -> tuple[Rollout, Targets]:
    """Observations and states at random; actions that the policy takes, with nearly its own log-probs and values."""
    generator = torch.Generator().manual_seed(7)

    def numbers(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    def flags(share: float) -> Tensor:
        return torch.rand((STEPS, ROWS), generator=generator) < share

    def leaf(spec: ArraySpec) -> Tensor:
        if spec.sizes:
            return (torch.rand((STEPS, ROWS, *spec.shape), generator=generator) * min(spec.sizes)).long()
        return numbers(STEPS, ROWS, *spec.shape)

    seen, start = tree_map(leaf, obs), flags(0.1)
    mask = None
    if masked:
        choices = sum(action.sizes) if action.sizes else action.size
        mask = torch.rand((STEPS, ROWS, choices), generator=generator) < 0.7
        mask[..., 0] = True
        mask[..., -1] = True
    chunks = Chunks(STEPS, length, burn_in)
    state = tuple(numbers(len(chunks), *part.shape) for part in policy.initial_state(ROWS))
    before = tuple(torch.zeros(STEPS * ROWS, *part.shape[1:]) for part in policy.initial_state(1))
    flat_mask = None if mask is None else mask.flatten(0, 1)
    output = policy(tree_map(lambda part: part.flatten(0, 1), seen), before, start.flatten(), flat_mask)
    noise = policy.head.noise(torch.rand((STEPS * ROWS, policy.head.noise_size), generator=generator))
    taken = output.distribution.sample(noise)
    log_prob = output.distribution.log_prob(taken) + 0.1 * numbers(STEPS * ROWS)
    value = (output.value + 0.3 * numbers(STEPS * ROWS)).view(STEPS, ROWS)
    extras = {}
    if policy.critic.prediction_shape is not None:
        decoded = policy.critic.decode(output.prediction)
        extras["prediction"] = (decoded + 0.3 * numbers(*decoded.shape)).view(STEPS, ROWS, *decoded.shape[1:])
    nothing = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    valid = flags(share_valid)
    rollout = Rollout(
        obs=seen,
        action=taken.view(STEPS, ROWS, *taken.shape[1:]),
        log_prob=log_prob.view(STEPS, ROWS),
        value=value,
        reward=numbers(STEPS, ROWS),
        terminated=nothing,
        truncated=nothing,
        final_value=torch.zeros(STEPS, ROWS),
        episode_start=start,
        valid=valid,
        last_value=torch.zeros(ROWS),
        action_mask=mask,
        state=state,
        stats=RolloutStats(int(valid.sum()), Episodes(torch.zeros(0).numpy(), torch.zeros(0).long().numpy()), ()),
        chunks=chunks if state else None,
        extras=extras,
        learned_extras=tuple(extras),
    )
    return rollout, Targets(numbers(STEPS, ROWS), value + numbers(STEPS, ROWS))


def both(
    obs: ObsSpec,
    action: ArraySpec,
    made: dict[str, Any] | None = None,
    prepare: Callable[[Policy], object] = lambda policy: None,
    **settings: Any,
) -> tuple[Side, Side, Rollout, Targets]:
    """The native side, PyTorch's side, and what they learn from."""
    specs = Specs(obs, action)
    native, readable = (Side(config_of(kind, **settings), specs, prepare) for kind in ("native", "torch"))
    return native, readable, *made_rollout(native.policy, obs, action, **(made or {}))
