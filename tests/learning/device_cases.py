"""Every kind of policy, critic, distribution, term, transform and memory, as settings and spaces."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import Specs, build_policy
from surefoot.data.records import Knobs, Learned, Rollout, Targets
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.learning.device_learner import DeviceLearner
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.rollout.shared import SharedRollout
from surefoot.settings.config import Config
from surefoot.storage.state import copied, states
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, config_of, made_rollout, moved

MIXED = {
    "picture": ArraySpec("image", (12, 12, 3), "uint8"),
    "kind": ArraySpec("discrete", (), "int64", sizes=(4,), start=(0,)),
    "parts": ArraySpec("multi_discrete", (2,), "int64", sizes=(3, 4), start=(0, 0)),
    "vector": ArraySpec("box", (5,), "float32"),
}
SEVERAL = ArraySpec("multi_discrete", (2,), "int64", sizes=(3, 4), start=(0, 0))
SWITCHES = ArraySpec("multi_binary", (4,), "int8")
ADVERSARY = {"ppo__terms": {"adversary": {"epsilon": 0.1, "steps": 2, "share": 0.5}}}


@dataclass(frozen=True)
class Case:
    """Spaces, settings and what the made-up rollout is like."""

    settings: dict[str, Any] = field(default_factory=dict)
    obs: ObsSpec = SEVEN
    action: ArraySpec = THREE_ACTIONS
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        return config_of("torch", **{"ppo__epochs": 1, "ppo__batch_size": 72} | self.settings)

    def learner(self, device: torch.device | None = None) -> Learner:
        """The ordinary learner, or one whose epochs run on a device; the weights are always the same."""
        config = self.config
        policy, objective = moved(build_policy(config, Specs(self.obs, self.action))), Objective.of(config.ppo)
        if device is not None:
            return DeviceLearner(policy, objective, config, device)
        return Learner(policy, objective, GradientStep(policy, config.optimizer, config.ppo.max_grad_norm), config)

    def rollout(self) -> tuple[Rollout, Targets]:
        policy = moved(build_policy(self.config, Specs(self.obs, self.action)))
        rollout, targets = made_rollout(policy, self.obs, self.action, **self.made)
        return (shared(rollout), targets) if self.settings.get("rollout__num_envs") == 6 else (rollout, targets)

    def knobs(self) -> Knobs:
        return Knobs(self.config.knobs() | {"lr": 1e-3})


CASES = {
    "gaussian": Case({"ppo__clip_value": 0.2, "ppo__advantage_norm": "minibatch"}),
    "std of the state": Case({"policy__distribution": {"kind": "gaussian", "std": "state"}}),
    "fixed std": Case({"policy__distribution": {"kind": "gaussian", "std": "fixed"}, "ppo__target_kl": 1e-9}),
    "tanh": Case({"policy__distribution": "tanh_gaussian", "ppo__micro_batch_size": 20}),
    "beta": Case({"policy__distribution": "beta", "normalize__obs": True}, made={"share_valid": 0.7}),
    "categorical": Case({"policy__share_trunk": True}, action=CHOICES, made={"masked": True}),
    "multi discrete": Case(action=SEVERAL, made={"masked": True}),
    "bernoulli": Case(action=SWITCHES, made={"masked": True}),
    "images and choices": Case({"normalize__obs": True, "policy__critic_obs": "kind"}, obs=MIXED),
    "popart": Case({"normalize__returns": True}),
    "popart, previous": Case({"normalize__returns": True, "normalize__return_stats": "previous"}),
    "quantiles": Case(
        {"policy__critic": {"kind": "quantile", "clip": "mean_and_spread"}, "ppo__clip_value": 0.2}
        | {"normalize__returns": True}
    ),
    "twins": Case({"policy__critic": {"kind": "twin", "of": "quantile"}, "ppo__clip_value": 0.2}),
    "terms": Case(ADVERSARY | {"normalize__obs": True}),
    "kl penalty": Case({"ppo__terms": {"kl_penalty": {}}}),
    "no adversary": Case({"ppo__terms": {"adversary": {"epsilon": 0.0}}}),
    "transforms": Case({"optimizer__transforms": {"variance_scaling": {"warmup": 0}, "clip_norm": {"max_norm": 1}}}),
    "frozen": Case(
        {"optimizer__frozen": ["actor_body", "critic.head", "head.log_std"], "optimizer__clip_grad": "apart"}
        | {"normalize__returns": True, "optimizer__transforms": {"variance_scaling": {"warmup": 0}}}
    ),
    "gru": Case(ADVERSARY | {"policy__memory": "gru", "ppo__sequence_state": "recomputed"}, made={"length": 6}),
    "lstm": Case(
        {"policy__memory": "lstm", "policy__share_memory": True, "ppo__burn_in": 2, "ppo__micro_batch_size": 20},
        action=CHOICES,
        made={"length": 6, "burn_in": 2, "share_valid": 0.8, "masked": True},
    ),
    "several processes": Case({"rollout__num_envs": 6, "ppo__advantage_norm": "minibatch"}),
    "several processes, gru": Case({"rollout__num_envs": 6, "policy__memory": "gru"}, made={"length": 6}),
}


def shared(rollout: Rollout) -> Rollout:
    """As if another process stepped the second half of the rows."""
    from dataclasses import replace

    steps, rows = rollout.reward.shape
    nothing = torch.zeros(steps, rows, 0)
    whole = replace(rollout, obs=nothing, action=nothing, log_prob=nothing, state=())
    own = slice(0, rows // 2)
    parts = {
        name: value[:, own] for name, value in vars(rollout).items() if isinstance(value, Tensor) and value.dim() > 1
    }
    assert isinstance(rollout.obs, Tensor)
    parts |= {"last_value": rollout.last_value[own], "state": tuple(part[:, own] for part in rollout.state)}
    return SharedRollout(**vars(rollout) | parts, whole=whole, own=own, merge=lambda moments: moments)


def learned(learner: Learner, case: Case, updates: int = 1) -> Learned:
    """The result of the last of some updates from the same rollout."""
    rollout, targets = case.rollout()
    results = [learner.learn(rollout, targets, case.knobs()) for _ in range(updates)]
    return results[-1]


def state_of(learner: Learner) -> dict[str, Any]:
    """What a checkpoint has of a learner."""
    saved: dict[str, Any] = copied(states({"gradient": learner.gradient, "objective": learner.objective}))
    return saved | {"policy": {name: value.clone() for name, value in learner.policy.state_dict().items()}}
