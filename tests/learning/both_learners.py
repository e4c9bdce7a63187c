"""The native learner and PyTorch's, on the same rollout of made-up observations."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_learner
from surefoot.data.records import Chunks, Knobs, Rollout, RolloutStats, Targets
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_map
from surefoot.learning.learner import Learner
from surefoot.learning.native_learner import NativeLearner
from surefoot.learning.terms import Objective
from surefoot.native import core
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.native_plan import native_tensors
from surefoot.settings.config import Config

KNOBS = Knobs(lr=3e-3, clip=0.2, entropy_coef=0.01, value_coef=0.5)
CHOICE = ArraySpec("discrete", (), "int64", sizes=(3,), start=(0,))


@dataclass
class Case:
    """A policy for some kind of observation, and a rollout with it."""

    obs: ObsSpec
    policy: dict[str, Any]
    ppo: dict[str, Any]
    normalize: dict[str, Any]
    steps: int = 16
    rows: int = 4

    def config(self, learner: str) -> Config:
        """Small, with minibatches that do not divide the samples."""
        ppo = {"epochs": 2, "batch_size": 24} | self.ppo
        policy = {"hidden": [16]} | self.policy
        return Config(train={"learner": learner}, ppo=ppo, policy=policy, normalize=self.normalize)  # type: ignore[arg-type]

    def build(self, learner: str) -> Learner:
        """A learner whose policy always has the same weights."""
        config = self.config(learner)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            policy = ActorCritic(self.obs, CHOICE, config.policy, config.normalize)
            with torch.no_grad():
                for name, parameter in policy.named_parameters():
                    if name.endswith("bias"):
                        parameter.add_(torch.randn_like(parameter), alpha=0.2)
        policy.absorb_obs(tree_map(lambda spec: made_up(spec, 50, 7), self.obs))
        return build_learner(config, policy, Objective.of(config.ppo))

    def rollout(self, policy: ActorCritic) -> tuple[Rollout, Targets]:
        """What the policy did, with rewards that depend on it."""
        count, shape = self.steps * self.rows, (self.steps, self.rows)
        flat = tree_map(lambda spec: made_up(spec, count, 1), self.obs)
        starts = torch.zeros(shape, dtype=torch.bool)
        starts[0] = True
        state, chunks = policy.initial_state(self.rows), Chunks(self.steps, 8, 0)
        with torch.no_grad():
            output = policy(flat, policy.initial_state(count), torch.ones(count, dtype=torch.bool))
            noise = torch.rand(count, policy.head.noise_size, generator=torch.Generator().manual_seed(3))
            action = output.distribution.sample(policy.head.noise(noise))
            log_prob = output.distribution.log_prob(action)
        reward = action.float().view(shape)
        value, zeros = output.value.view(shape), torch.zeros(shape)
        rollout = Rollout(
            obs=tree_map(lambda leaf: leaf.view(*shape, *leaf.shape[1:]), flat),
            action=action.view(*shape, *action.shape[1:]),
            log_prob=log_prob.view(shape),
            value=value,
            reward=reward,
            terminated=zeros.bool(),
            truncated=zeros.bool(),
            final_value=zeros,
            episode_start=starts,
            valid=~zeros.bool(),
            last_value=torch.zeros(self.rows),
            action_mask=None,
            state=tuple(part.expand(len(chunks.state_steps), *part.shape).clone() for part in state),
            stats=RolloutStats(count, (), ()),
            chunks=chunks if state else None,
        )
        return rollout, Targets(reward - reward.mean(), value + 1 + reward)

    def learn(self, learner: str, updates: int = 1, instructions: str = "") -> dict[str, Tensor]:
        """The policy after some updates."""
        built = self.build(learner)
        if isinstance(built, NativeLearner):
            plan, tensors = built._plan, native_tensors(built.policy)
            built._core = core().Learner(plan.policy, plan.terms, tensors, instructions)
        assert isinstance(built, NativeLearner) == (learner == "native")
        assert isinstance(built.policy, ActorCritic)
        before = copy.deepcopy(built.policy)
        for _ in range(updates):
            built.learn(*self.rollout(before), KNOBS)
        return built.policy.state_dict()


def case(obs: ObsSpec, ppo: Any = None, normalize: Any = None, **policy: Any) -> Case:
    """A case with some settings."""
    return Case(obs, policy, ppo or {}, normalize or {})


def made_up(spec: ArraySpec, count: int, seed: int) -> Tensor:
    """Random observations of a kind, as envs give them."""
    generator = torch.Generator().manual_seed(seed)
    if spec.kind == "image":
        return torch.randint(0, 256, (count, *spec.shape), generator=generator).to(torch.uint8)
    if spec.kind == "discrete":
        return torch.randint(0, spec.sizes[0], (count,), generator=generator)
    if spec.kind == "multi_discrete":
        columns = [torch.randint(0, size, (count,), generator=generator) for size in spec.sizes]
        return torch.stack(columns, dim=1).view(count, *spec.shape)
    if spec.kind == "multi_binary":
        return torch.randint(0, 2, (count, *spec.shape), generator=generator)
    return 3 + 2 * torch.randn(count, *spec.shape, generator=generator)


def assert_alike(one: dict[str, Tensor], other: dict[str, Tensor], tolerance: float = 1e-5) -> None:
    """The same weights and statistics within rounding."""
    assert one.keys() == other.keys()
    for name in one:
        torch.testing.assert_close(
            one[name], other[name], atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )
