"""The learner whose epochs run in the core: one call per update; `Learner` is its reference."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from surefoot.core.config import Config, OptimizerConfig
from surefoot.core.errors import PolicyError
from surefoot.core.records import Batch, Knobs
from surefoot.learning.gradient import GradientStep
from surefoot.learning.learner import Learner
from surefoot.learning.terms import Objective
from surefoot.learning.watch import GRAD_NORM, SKIPPED, Watch, Watched
from surefoot.native import core
from surefoot.native.kernels import core_or_none, kernel_threads
from surefoot.policies.native_parts import Plain, UnknownToCoreError, unknown
from surefoot.policies.native_plan import native_tensors, plan_policy
from surefoot.policies.policy import ActorCritic, Policy
from surefoot.policies.preprocess import Preprocess
from surefoot.rollout.samples import Samples
from surefoot.rollout.sequences import Runs, SequenceSamples


@dataclass(frozen=True)
class LearnerPlan:
    """The plans of a policy and of the terms of an objective, which the core can learn with."""

    policy: Plain
    terms: list[Plain]


def plan_learner(policy: Policy, objective: Objective) -> LearnerPlan | str:
    """The plan for the core, or one line that explains why it cannot learn with this policy or objective."""
    plan = plan_policy(policy, learns=True)
    if isinstance(plan, str):
        return plan
    try:
        return LearnerPlan(plan.plain, [_plan_term(term) for term in objective.terms.values()])
    except UnknownToCoreError as reason:
        return str(reason)


def _plan_term(term: object) -> Plain:
    describe = vars(type(term)).get("native")
    if describe is None:  # a subclass may compute something else
        raise unknown("term", term)
    described: Plain = describe(term)
    if described["kind"] not in _known_terms():
        raise UnknownToCoreError(f"the native core has no term of kind '{described['kind']}'")
    return described


@cache
def _known_terms() -> Sequence[str]:
    core = core_or_none()
    return () if core is None else core.part_kinds()["term"]


class NativeLearner(Learner):
    """The same updates as those of `Learner`, within rounding; equal bits for any number of threads."""

    def __init__(
        self, policy: Policy, objective: Objective, gradient: GradientStep, config: Config, plan: LearnerPlan
    ) -> None:
        super().__init__(policy, objective, gradient, config)
        self.description = f"native, {core().instructions()}"
        self._plan, self._optimizer = plan, optimizer_settings(config.optimizer, config.ppo.max_grad_norm)
        self._core = core().Learner(plan.policy, plan.terms, self._tensors())
        names = list(objective.terms)
        terms = (measure.partition(".") for measure in self._core.measures[:-2])
        measures = [f"{names[int(term)]}/{name}" for term, _, name in terms]
        self._names = [*measures, GRAD_NORM, SKIPPED, *gradient.part_norms.metrics]

    # tour: learn
    def _run_epochs(self, samples: Samples, knobs: Knobs) -> Watch:
        self._follow(plan_learner(self.policy, self.objective))
        transformed: list[Watched] = []
        done = self._core.learn(
            native_samples(samples, self._policy.preprocess),
            self._settings(knobs) | {"num_valid": len(samples.batch)},
            self._tensors(),
            self.gradient.native_memory(),
            kernel_threads(),
            (lambda: transformed.append(self.gradient.transform(knobs))) if self.gradient.is_transformed else None,
        )
        self.gradient.count = done["steps"]
        rows, shares = torch.from_numpy(done["measures"]), torch.from_numpy(done["shares"])
        names = self._names
        if any(transformed):
            names = [*names, *transformed[0]]
            others = torch.stack([torch.stack(list(step.values())) for step in transformed])
            rows = torch.cat((rows, others), dim=1)
        return Watch.of(names, rows * shares[:, None], done["minibatches"])

    # tour: end

    def _follow(self, plan: LearnerPlan | str) -> None:
        """Hooks may change more than the weights of a policy."""
        if isinstance(plan, str):
            raise PolicyError(
                f"the policy was changed during a run with the native learner: {plan}; set train.learner to torch"
            )
        if plan != self._plan:
            self._plan, self._core = plan, core().Learner(plan.policy, plan.terms, self._tensors())

    @property
    def _policy(self) -> ActorCritic:
        assert isinstance(self.policy, ActorCritic)  # only an ActorCritic has a plan
        return self.policy

    def _tensors(self) -> dict[str, Any]:
        return native_tensors(self._policy)

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
            "knobs": dict(knobs),
            "lr": knobs.lr,
            "steps_before": self.gradient.count,
        }


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
    }
