"""Risk-sensitive objectives of episode returns by return capping (Mead et al. 2025, "Return Capping", ICML)."""

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from surefoot.data.records import Rollout, Targets
from surefoot.errors import ConfigError
from surefoot.learning.estimators import estimators
from surefoot.learning.estimators.gae import GAE
from surefoot.learning.reward_scaler import discounted_sums
from surefoot.policies.critics import Critic
from surefoot.settings.config import Count, Fraction, Number, Positive, PPOConfig
from surefoot.settings.parts import PartSettings
from surefoot.statistics.risk import cvar
from surefoot.storage.saved import Saved
from surefoot.telemetry import names


def capped_rewards(rewards: Tensor, sums: Tensor, cap: float, alpha: float, beta: float) -> Tensor:
    """(1 - beta) r + beta / alpha (min(G', c) - min(G, c)), G the return of the episode before and G' after the step.

    Over an episode they add up to (1 - beta) G + beta / alpha min(G, c) minus a constant, and CVaR_alpha of the return
    is the maximum over c of E[min(G, c)] / alpha - c (1 - alpha) / alpha, at c the alpha-quantile of G.
    """
    gained = sums.clamp(max=cap) - (sums - rewards).clamp(max=cap)
    return (1 - beta) * rewards + (beta / alpha) * gained


def noise_cost(rollout: Rollout, advantage: Tensor) -> float:
    """By how much exploration noise lowers the objective of an episode, to second order in the noise.

    With the policy p^(1/T), dJ/dT at T = 1 is -Cov(A, log p) per step. T scales the variance of a Gaussian: noise of
    variance T s^2 changes J by about T s^2 J'' / 2, so J without noise is about J - dJ/dT.
    """
    valid = rollout.valid
    chosen, log_prob = advantage[valid].double(), rollout.log_prob[valid].double()
    episodes = max(1, int((rollout.terminated | rollout.truncated)[valid].sum()))
    return float((chosen * (log_prob - log_prob.mean())).sum() / episodes)


@estimators.register("risk")
class Risk(GAE):
    """GAE on rewards that are capped at the quantile of recent episode returns.

    Maximizes (1 - beta) E[G] + beta CVaR_alpha(G) of the undiscounted episode return G, or E[G] subject to
    CVaR_alpha(G) >= limit. A time limit ends an episode here: there is no bootstrap behind it.
    """

    takes_raw_rewards = True

    class Settings(PartSettings):
        """The objective, or the constraint."""

        alpha: Positive = Field(0.05, le=1, description="share of worst episodes that CVaR is the mean of")
        beta: Fraction = Field(0.9, description="weight of CVaR against the mean: 0 is the mean alone, 1 CVaR alone")
        limit: float | None = Field(
            None, description="instead of beta: maximize the mean while CVaR is at least this return"
        )
        dual_rate: Positive = Field(0.02, description="with limit: step of the dual variable per update")
        dual_damping: float = Field(
            0.5, ge=0, description="with limit: the dual variable also follows the violation itself, which damps it"
        )
        window: Count = Field(2000, description="recent episodes from which the cap and CVaR are estimated")
        warmup: Number = Field(0, description="updates during which alpha falls from 1 to its value")

    def __init__(self, settings: Settings, ppo: PPOConfig) -> None:
        super().__init__(settings, ppo)
        if ppo.gamma != 1:
            raise ConfigError(
                [f"ppo.gamma: must be 1 for ppo.estimator risk: episode returns are not discounted; not {ppo.gamma}"]
            )
        self._settings = settings
        self._carried, self._recent = torch.zeros(0), torch.zeros(0, dtype=torch.float64)
        self._dual, self._updates = 0.0, 0

    def estimate(self, rollout: Rollout, critic: Critic) -> Targets:
        sums = self._returns_so_far(rollout)
        alpha = self._alpha()
        self._updates += 1
        ended = rollout.terminated | rollout.truncated
        whole = replace(rollout, terminated=ended, truncated=torch.zeros_like(ended))
        if not len(self._recent):  # no episode has ended yet
            return super().estimate(whole, critic)
        cap, worst = float(self._recent.quantile(alpha)), float(cvar(self._recent.numpy(), self._settings.alpha))
        beta = self._beta(worst)
        rewards = torch.where(rollout.valid, rollout.reward, 0)
        targets = super().estimate(replace(whole, reward=capped_rewards(rewards, sums, cap, alpha, beta)), critic)
        told = {
            names.RISK_CVAR: worst,
            names.RISK_MEAN: float(self._recent.mean()),
            names.RISK_CAP: cap,
            names.RISK_ALPHA: alpha,
            names.RISK_BETA: beta,
            names.RISK_NOISE_COST: noise_cost(rollout, targets.advantage),
        }
        return replace(targets, metrics=told)

    def _returns_so_far(self, rollout: Rollout) -> Tensor:
        """The return of the running episode after every step `[T, N]`; finished ones are added to the recent ones."""
        ended = rollout.terminated | rollout.truncated
        rewards = torch.where(rollout.valid, rollout.reward, 0)
        if self._carried.shape != rewards.shape[1:]:
            self._carried = torch.zeros_like(rewards[0])
        sums = discounted_sums(rewards, ended, self._carried, 1.0)
        self._carried = sums[-1] * ~ended[-1]
        finished = sums[ended & rollout.valid].double()
        self._recent = torch.cat((self._recent, finished))[-self._settings.window :]
        return sums

    def _alpha(self) -> float:
        settings = self._settings
        share = min(1.0, self._updates / settings.warmup) if settings.warmup else 1.0
        return 1 + (settings.alpha - 1) * share

    def _beta(self, worst: float) -> float:
        """The weight of CVaR. With a limit it is that of the Lagrangian E + l (CVaR - limit), divided by 1 + l."""
        settings = self._settings
        if settings.limit is None:
            return settings.beta
        violation = (settings.limit - worst) / max(float(self._recent.std(correction=0)), 1e-8)
        self._dual = max(0.0, self._dual + settings.dual_rate * violation)
        dual = max(0.0, self._dual + settings.dual_damping * violation)
        return dual / (1 + dual)

    def forget_running(self) -> None:
        self._carried = torch.zeros_like(self._carried)

    def state(self) -> dict[str, Any]:
        return {"carried": self._carried, "recent": self._recent, "dual": self._dual, "updates": self._updates}

    def check_state(self, saved: Saved) -> None:
        """Check types and signs; the numbers of rows and of recent episodes may differ."""
        for name, own in (("carried", self._carried), ("recent", self._recent)):
            if saved[name].array().ndim != 1:
                raise saved[name].wrong("an array with one dimension")
            saved[name].like(own.new_zeros(len(saved[name].value)))
        saved["dual"].number(least=0)
        saved["updates"].integer()

    def load_state(self, state: dict[str, Any]) -> None:
        self._carried, self._recent = state["carried"].clone(), state["recent"].clone()
        self._dual, self._updates = float(state["dual"]), int(state["updates"])
