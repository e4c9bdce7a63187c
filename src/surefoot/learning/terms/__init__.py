"""The objective is a sum of terms: surrogate, value and entropy, and any others by name; one file per term."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from surefoot.core.config import BUILT_IN_TERMS, PPOConfig
from surefoot.core.errors import PartError, SurefootError
from surefoot.core.failures import brief, let_interrupts_through
from surefoot.core.parts import PartSettings
from surefoot.core.records import Batch, Knobs, Learned
from surefoot.core.registry import Registry
from surefoot.core.saved import Saved
from surefoot.core.state import check_present, load_present
from surefoot.policies.native_parts import Plain, unknown
from surefoot.policies.policy import Policy, PolicyOutput


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

    def __init__(self, settings: PartSettings, name: str, ppo: PPOConfig) -> None:
        self.name = name

    def loss(self, minibatch: Minibatch) -> TermLoss:
        """The loss of a minibatch; a term may run the policy again."""
        raise NotImplementedError

    def weight(self, knobs: Knobs) -> float:
        """The factor of the loss; at 0 the term is only measured, without a gradient."""
        return knobs.get(f"{self.name}.weight", 1.0)

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

    @staticmethod
    def of(ppo: PPOConfig) -> "Objective":
        """The terms of PPO, then the configured ones."""
        named = {name: PartSettings(kind=name) for name in BUILT_IN_TERMS} | ppo.terms
        return Objective([terms[settings.kind](settings, name, ppo) for name, settings in named.items()])

    def __call__(self, policy: Policy, batch: Batch, knobs: Knobs) -> Losses:
        """All losses of a minibatch, from one forward pass of the policy."""
        minibatch = Minibatch(policy, batch, policy(*batch.inputs), knobs)
        total: Tensor | None = None
        watched: dict[str, Tensor] = {}
        for name, term in self.terms.items():
            weight = term.weight(knobs)
            with nullcontext() if weight != 0 else torch.no_grad():
                result = _call(term.loss, name, minibatch)
            if weight != 0:
                weighted = result.loss if weight == 1 else weight * result.loss
                total = weighted if total is None else total + weighted
            watched[f"{name}/loss"] = result.loss.detach()
            watched |= {f"{name}/{key}": value.detach() for key, value in result.metrics.items()}
        assert total is not None  # the surrogate always has a weight
        return Losses(total, watched)

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


def _call(method: Callable[..., Any], name: str, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except SurefootError:
        raise
    except BaseException as error:  # a term may even call sys.exit
        let_interrupts_through(error)
        raise PartError(f"term '{name}' raised an exception in {method.__name__}: {brief(error)}") from error
