"""The objective is a sum of terms: surrogate, value and entropy, and any others by name; one file per term."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from surefoot.data.records import Batch, Knobs, Learned, Rollout, Targets
from surefoot.data.specs import ArraySpec
from surefoot.errors import PartError, SurefootError
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.policies.native_parts import Plain, unknown
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.rollout.samples import Samples, num_units, samples_of, some_units
from surefoot.settings.config import BUILT_IN_TERMS, PPOConfig
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present, load_present


@dataclass(frozen=True)
class Minibatch:
    """The inputs of a term: the samples, the policy, and the current output of the policy for the samples."""

    policy: Policy
    batch: Batch
    output: PolicyOutput
    knobs: Knobs

    @cached_property
    def log_ratio(self) -> Tensor:
        """Log of the ratio of new to old action probabilities `[B]`; computed once for all terms."""
        return self.output.distribution.log_prob(self.batch.action) - self.batch.log_prob


@dataclass(frozen=True)
class TermLoss:
    """The mean loss over the minibatch, before the term's weight; `metrics` are logged as `<term>/<name>`."""

    loss: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)


class Term:
    """Base class of terms. A setting `weight` of type `Knob` scales the loss, and schedules can change it."""

    learns_from_all_rows = False
    """Whether it also learns from rows in which other policies act, which have no weight in other terms."""

    def __init__(self, settings: PartSettings, name: str, ppo: PPOConfig) -> None:
        self.name = name

    def loss(self, minibatch: Minibatch) -> TermLoss:
        """The loss of a minibatch; a term may run the policy again."""
        raise NotImplementedError

    def extras(self, policy: Policy) -> dict[str, ArraySpec]:
        """The extras of the rollout that it reads beside those of the policy, by name, each for one row."""
        return {}

    def weight(self, knobs: Knobs) -> float:
        """The factor of the loss; at 0 the term is only measured, without a gradient.

        It is the setting `weight` of the term, or `ppo.<name>_coef` of PPO's own terms.
        """
        return knobs.get(f"{self.name}.weight", knobs.get(f"{self.name}_coef", 1.0))

    def observe(self, learned: Learned) -> None:
        """React to the results of an update."""

    def native(self) -> Plain:
        """Kind and settings of the term in the native core; see docs/native.md."""
        raise unknown("term", self)

    def state(self) -> dict[str, Any]:
        """For checkpoints."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """From a checkpoint."""


terms: Registry[Term] = Registry("term", "surefoot.learning.terms", base="Term")


@dataclass(frozen=True)
class Losses:
    """`total` is minimized; `watched` holds every term's loss and metrics by `<term>/<name>`."""

    total: Tensor
    watched: dict[str, Tensor]


class Objective:
    """The sum of all terms, each with its weight."""

    def __init__(self, parts: Sequence[Term]) -> None:
        self.terms = {term.name: term for term in parts}
        self.learns_from_all_rows = any(term.learns_from_all_rows for term in parts)

    @staticmethod
    def of(ppo: PPOConfig) -> "Objective":
        """The terms of PPO, then the configured ones."""
        named = {name: PartSettings(kind=name) for name in BUILT_IN_TERMS} | ppo.terms
        return Objective([terms[settings.kind](settings, name, ppo) for name, settings in named.items()])

    def __call__(self, policy: Policy, batch: Batch, knobs: Knobs) -> Losses:
        """All losses of a minibatch, from one forward pass of the policy; from two if other policies acted in it."""
        whole = Minibatch(policy, batch, policy(*batch.inputs), knobs)
        own, share = _acted(whole)
        total: Tensor | None = None
        watched: dict[str, Tensor] = {}
        for name, term in self.terms.items():
            weight = term.weight(knobs)
            with nullcontext() if weight != 0 else torch.no_grad():
                result = _call(term.loss, name, whole if term.learns_from_all_rows else own)
            found = {f"{name}/loss": result.loss} | {f"{name}/{key}": value for key, value in result.metrics.items()}
            if own is not whole and not term.learns_from_all_rows:
                found = {key: share * value for key, value in found.items()}
            if weight != 0:
                loss = found[f"{name}/loss"]
                weighted = loss if weight == 1 else weight * loss
                total = weighted if total is None else total + weighted
            watched |= {key: value.detach() for key, value in found.items()}
        return Losses(0 * whole.log_ratio.sum() if total is None else total, watched)

    def samples(self, rollout: Rollout, targets: Targets, ppo: PPOConfig, policy: Policy) -> Samples:
        """What there is to learn from; an error if the rollout does not have what a term reads."""
        for name, term in self.terms.items():
            for extra, spec in term.extras(policy).items():
                given = rollout.extras.get(extra) if extra in rollout.learned_extras else None
                if given is None or (given.shape[2:], str(given.dtype)) != (spec.shape, f"torch.{spec.dtype}"):
                    raise PartError(
                        f"term '{name}' reads the extra '{extra}', {spec.dtype} of shape {list(spec.shape)} per row;"
                        " add a hook that declares it (Hook.extras) and writes it in after_rollout"
                    )
        return samples_of(rollout, targets, ppo, self.learns_from_all_rows)

    def observe(self, learned: Learned) -> None:
        """Pass the results of an update to the terms."""
        for name, term in self.terms.items():
            _call(term.observe, name, learned)

    def state(self) -> dict[str, Any]:
        """For checkpoints: the state of each term that has one."""
        return {name: state for name, term in self.terms.items() if (state := term.state())}

    def check_state(self, saved: Saved) -> None:
        """Check the states of the terms."""
        check_present(self.terms, saved)

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore from a checkpoint; a term without a saved state keeps its initial one."""
        load_present(self.terms, state)


def _acted(whole: Minibatch) -> tuple[Minibatch, float | Tensor]:
    """The part of a minibatch in which the learning policy acted, and the weight of its mean in the whole."""
    batch = whole.batch
    if batch.weight is None:
        return whole, 1.0
    chosen = batch.weight[: num_units(batch)].nonzero().squeeze(1)  # a sequence has one weight
    if not len(chosen):
        return replace(whole), 0.0
    own = some_units(batch, chosen)
    return replace(whole, batch=own, output=whole.policy(*own.inputs)), batch.weight.mean()


def _call(method: Callable[..., Any], name: str, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except SurefootError:
        raise
    except BaseException as error:  # a term may even call sys.exit
        let_interrupts_through(error)
        raise PartError(f"term '{name}' raised an exception in {method.__name__}: {brief(error)}") from error
