"""The learner whose epochs run in the core: one call per update; `Learner` is its reference."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from surefoot.data.records import Batch, Knobs
from surefoot.errors import PolicyError
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective, Term
from surefoot.learning.watch import GRAD_NORM, SKIPPED, Measured, Watched
from surefoot.native import core
from surefoot.native.kernels import kernel_threads
from surefoot.philox import permutations
from surefoot.policies.actor_critic import ActorCritic
from surefoot.policies.native_parts import NotNative, Plain, UnknownToCoreError, description_of
from surefoot.policies.native_plan import native_tensors, plan_policy
from surefoot.policies.policy import Policy
from surefoot.policies.preprocess import Preprocess
from surefoot.policies.until_changed import UntilChanged
from surefoot.rollout.samples import Samples
from surefoot.rollout.sequences import Runs, SequenceSamples
from surefoot.rollout.shared import SharedSamples
from surefoot.settings.config import Config, OptimizerConfig

_EXTRAS = (torch.float32, torch.int64, torch.bool)
"""Types of extras that native terms can read by name; others are converted to the first or the second."""


@dataclass(frozen=True)
class LearnerPlan:
    """The plans of a policy and of the terms of an objective, which the core can learn with."""

    policy: Plain
    terms: list[Plain]


def plan_learner(policy: Policy, terms: Iterable[Term]) -> LearnerPlan | NotNative:
    """The plan for the core, if it can learn with this policy and the terms of an objective."""
    plan = plan_policy(policy, learns=True)
    if isinstance(plan, NotNative):
        return plan
    try:
        return LearnerPlan(plan.plain, [description_of("term", term) for term in terms])
    except UnknownToCoreError as reason:
        return NotNative(str(reason))


def plan_transforms(gradient: GradientStep) -> list[Plain] | NotNative:
    """The plans of the gradient transforms, if the core can apply all of them; otherwise PyTorch does, in order."""
    if gradient.is_reduced:
        return NotNative("gradients are summed over processes")
    try:
        plans = {name: description_of("gradient transform", one) for name, one in gradient.transforms.items()}
    except UnknownToCoreError as reason:
        return NotNative(str(reason))
    return [plan | {"name": name} for name, plan in plans.items()]


class NativeLearner(Learner):
    """The same updates as those of `Learner`, within rounding; equal bits for any number of threads."""

    def __init__(
        self, policy: Policy, objective: Objective, gradient: GradientStep, config: Config, plan: LearnerPlan
    ) -> None:
        super().__init__(policy, objective, gradient, config)
        self.description = f"native, {core().instructions()}"
        if isinstance(transforms := plan_transforms(gradient), NotNative):
            self.description += f"; gradients are transformed in PyTorch ({transforms.reason})"
        self._plan, self._optimizer = plan, optimizer_settings(config.optimizer, config.ppo.max_grad_norm)
        self._described = UntilChanged(_described)
        self._core = core().Learner(plan.policy, plan.terms, native_tensors(self._policy))
        names = list(objective.terms)
        terms = (measure.partition(".") for measure in self._core.measures[:-2])
        measures = [f"{names[int(term)]}/{name}" for term, _, name in terms]
        self._names = [*measures, GRAD_NORM, SKIPPED, *gradient.part_norms.metrics]

    # tour: learn
    def _run_epochs(self, samples: Samples, knobs: Knobs) -> Measured:
        tensors = self._follow()
        transforms, transformed = plan_transforms(self.gradient), list[Watched]()
        is_known = not isinstance(transforms, NotNative)
        done = self._core.learn(
            native_samples(samples, self._policy.preprocess),
            self._settings(knobs)
            | {"num_valid": len(samples.batch), "transforms": transforms if is_known else None}
            | self._shared(samples),
            tensors,
            self.gradient.native_memory(),
            kernel_threads(),
            None if is_known else lambda sums: transformed.append(self._transformed(knobs, sums)),
        )
        self.gradient.count = done["steps"]
        names, rows = [*self._names, *done["transform_measures"]], [done["measures"], done["transformed"]]
        if any(transformed):
            names += transformed[0]
            rows.append(torch.stack([torch.stack(list(step.values())) for step in transformed]).numpy())
        return Measured(names, np.concatenate(rows, axis=1) * done["shares"][:, None], done["minibatches"])

    # tour: end

    def _transformed(self, knobs: Knobs, sums: NDArray[np.float64]) -> Watched:
        return self.gradient.transform(knobs, torch.from_numpy(sums))

    def _shared(self, samples: Samples) -> dict[str, Any]:
        """The minibatches of all processes, if they share the samples."""
        if not isinstance(samples, SharedSamples):
            return {}
        ppo = self._ppo
        orders = torch.from_numpy(permutations(self._seed, self.update, ppo.epochs, samples.num_units))
        return {"shared": samples.native(ppo.batch_size, orders, ppo.advantage_norm == "minibatch")}

    def _follow(self) -> dict[str, NDArray[np.float32]]:
        """The tensors of the policy. Hooks may have changed more of it than their numbers."""
        plan, tensors = self._described.of(self._policy, *self.objective.terms.values())
        if isinstance(plan, NotNative):
            raise PolicyError(
                f"the policy was changed during a run with the native learner: {plan.reason}; set train.learner to"
                " torch"
            )
        if plan != self._plan:
            self._plan, self._core = plan, core().Learner(plan.policy, plan.terms, tensors)
        return tensors

    @property
    def _policy(self) -> ActorCritic:
        assert isinstance(self.policy, ActorCritic)  # only an ActorCritic has a plan
        return self.policy

    def _settings(self, knobs: Knobs) -> dict[str, Any]:
        ppo = self._ppo
        return self._optimizer | {
            "seed": self._seed,
            "update": self.update,
            "epochs": ppo.epochs,
            "batch_size": ppo.batch_size,
            "micro_batch_size": ppo.micro_batch_size or 0,
            "normalizes_advantages": ppo.advantage_norm == "minibatch",
            "target_kl": math.inf if ppo.target_kl is None else ppo.target_kl,
            "weights": [term.weight(knobs) for term in self.objective.terms.values()],
            "knobs": dict(knobs.items()),
            "lr": knobs.lr,
            "steps_before": self.gradient.count,
        }


def _described(policy: ActorCritic, *terms: Term) -> tuple[LearnerPlan | NotNative, dict[str, NDArray[np.float32]]]:
    """The plan, and views of the policy's tensors if there is one."""
    plan = plan_learner(policy, terms)
    return plan, {} if isinstance(plan, NotNative) else native_tensors(policy)


def optimizer_settings(config: OptimizerConfig, max_norm: float | None) -> dict[str, Any]:
    """The optimizer's settings for the core, without the learning rate."""
    return {
        "beta1": config.betas[0],
        "beta2": config.betas[1],
        "epsilon": config.adam_eps,
        "weight_decay": config.weight_decay,
        "is_decoupled": config.algorithm == "adamw",
        "max_norm": math.inf if max_norm is None else max_norm,
    }


def native_samples(samples: Samples, preprocess: Preprocess) -> dict[str, Any]:
    """Samples, and sequences if there are any, as arrays for the core."""
    if isinstance(samples, SharedSamples):
        samples = samples.own
    if not isinstance(samples, SequenceSamples):
        return _arrays(samples.batch, preprocess)
    chunk, row = samples.place
    rows = samples.state[0].shape[1]
    carries = [
        _runs(carry.runs)
        | {"from": (carry.source * rows + carry.rows).numpy(), "to": (carry.chunk * rows + carry.rows).numpy()}
        for carry in samples.carries
    ]
    return _arrays(samples.steps, preprocess) | {
        "sequences": _runs(samples.runs)
        | {
            "places": (chunk * rows + row).numpy(),
            "num_places": rows * samples.state[0].shape[0],
            "states": [part.flatten(0, 1).flatten(1).contiguous().numpy() for part in samples.state],
            "episode_start": samples.steps.episode_start.numpy(),
            "carries": carries,
        }
    }


def _runs(runs: Runs) -> dict[str, Any]:
    return {"first": runs.first.numpy(), "length": runs.length.numpy()}


def _arrays(batch: Batch, preprocess: Preprocess) -> dict[str, Any]:
    columns = {name: getattr(batch, name) for name in ("log_prob", "value", "advantage", "returns")}
    arrays: dict[str, Any] = {name: column.contiguous().numpy() for name, column in columns.items()}
    mask: Tensor | None = batch.action_mask
    stored = batch.extras.get("prediction")
    return arrays | {
        "obs": [leaf.contiguous().numpy() for leaf in preprocess.for_core(batch.obs)],
        "action": batch.action.reshape(len(batch), -1).contiguous().numpy(),
        "prediction": None if stored is None else stored.flatten(1).contiguous().numpy(),
        "mask": None if mask is None else mask.flatten(1).contiguous().numpy(),
        "weight": None if batch.weight is None else batch.weight.contiguous().numpy(),
        "extras": {name: _for_terms(extra).contiguous().numpy() for name, extra in batch.extras.items()},
    }


def _for_terms(extra: Tensor) -> Tensor:
    if extra.dtype in _EXTRAS:
        return extra
    return extra.float() if extra.is_floating_point() else extra.long()
