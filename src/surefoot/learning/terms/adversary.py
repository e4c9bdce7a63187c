"""State-adversarial PPO (Zhang et al. 2020): the policy should act alike on perturbed observations."""

import math
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

from surefoot.data.records import Batch
from surefoot.learning.attacks import LARGEST, MOST_STEPS, Attack, Neighborhood
from surefoot.learning.terms import Minibatch, Term, TermLoss, terms
from surefoot.philox import Stream, words
from surefoot.rollout.samples import num_units, some_units
from surefoot.settings.config import Count, Number, Positive, PPOConfig
from surefoot.settings.parts import Knob, PartSettings
from surefoot.storage.saved import Saved


@terms.register("adversary")
class Adversary(Term):
    """Penalizes the KL divergence of the actions on perturbed observations from those on clean ones.

    mean KL(pi(s) || pi(s + delta)), delta the worst that the attack finds. The gradient does not reach pi(s), as in the
    authors' code: the term pulls perturbed actions to the clean ones, which the surrogate improves.
    """

    class Settings(PartSettings):
        """The weight, the attack, and how much of a minibatch is attacked."""

        weight: Knob = Field(0.1, description="weight of the KL divergence")
        epsilon: Knob = Field(
            0.05,
            le=LARGEST,
            description="maximum perturbation of each element, in standard deviations of normalized observations and in"
            " raw units of others; 0 turns the term off",
        )
        method: Literal["fgsm", "pgd"] = Field("pgd", description="attack: one step, or projected gradient descent")
        steps: Count = Field(3, le=MOST_STEPS, description="number of steps of pgd")
        step_size: Positive | None = Field(
            None, le=LARGEST, description="length of a step of pgd as a multiple of epsilon; by default 2.5 / steps"
        )
        share: float = Field(1.0, gt=0, le=1, description="share of the samples, or sequences, that are attacked")
        seed: Number = Field(0, description="seed of the random start of the attacks")

    def __init__(self, settings: Settings, name: str, ppo: PPOConfig) -> None:
        super().__init__(settings, name, ppo)
        self._settings, self._count = settings, 0

    def loss(self, minibatch: Minibatch) -> TermLoss:
        settings, batch = self._settings, minibatch.batch
        attack = Attack(settings.method, minibatch.knobs[f"{self.name}.epsilon"], settings.steps, settings.step_size)
        if attack.epsilon == 0:
            nothing = batch.log_prob.new_zeros(())
            return TermLoss(nothing, {"kl": nothing, "max_kl": nothing, "share": nothing})
        attacked = self._attacked(batch)
        around = Neighborhood(minibatch.policy, attacked.inputs)
        delta = around.worst(around.start(settings.seed, self._count, attack.epsilon), attack)
        self._count += 1
        divergence = around.divergence(delta)
        share = divergence.new_full((), len(attacked) / len(batch))
        return TermLoss(divergence.mean(), {"kl": divergence.mean(), "max_kl": divergence.max(), "share": share})

    def state(self) -> dict[str, Any]:
        return {"count": self._count}

    def check_state(self, saved: Saved) -> None:
        saved["count"].integer()

    def load_state(self, state: dict[str, Any]) -> None:
        self._count = state["count"]

    def _attacked(self, batch: Batch) -> Batch:
        """The samples that are attacked: all, or a random choice of whole sequences or single samples."""
        if self._settings.share == 1:
            return batch
        number = num_units(batch)
        keys = words(self._settings.seed, [self._count], [0], number, Stream.ATTACKED)[0, 0]
        chosen = np.argsort(keys, kind="stable")[: math.ceil(self._settings.share * number)]
        return some_units(batch, torch.from_numpy(chosen))
