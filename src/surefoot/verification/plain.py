"""The steps that both paths share, against plain numpy: sampling, targets, statistics and schedules of a run."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from surefoot.data.tree import tree_items, tree_map
from surefoot.policies.normalizer import RunningNormalizer
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config
from surefoot.verification import formulas
from surefoot.verification.formulas import Pooled, Steps
from surefoot.verification.legs import Leg
from surefoot.verification.nudges import TOLERANCE
from surefoot.verification.outputs import count_other_actions
from surefoot.verification.plain_update import PlainUpdate
from surefoot.verification.recording import statistics_of
from surefoot.verification.report import Findings, magnitude
from surefoot.verification.rounding import ROUNDING

EXACT = 1e-9
"""Relative error of float64 sums that are added in a different order."""
NUMPY = "against numpy"
KNOBS, STATISTICS, TARGETS = "knobs", "normalizer statistics", "GAE"


class Plain:
    """Follows the legs of a traveler, from the first one, and counts and sums everything itself."""

    def __init__(self, config: Config) -> None:
        self._config, self._update = config, PlainUpdate(config)
        self._legs = self._steps = 0
        self._starts: NDArray[np.bool_] | None = None
        self._statistics: dict[str, Pooled] = {}
        self._sums = Pooled(0.0, np.zeros(()), np.zeros(()))
        self._carried: Any = 0.0

    def compare(self, findings: Findings, leg: Leg) -> None:
        """Compare the next leg."""
        self._compare_starts(findings, leg)
        self._compare_actions(findings, leg)
        self._compare_knobs(findings, leg)
        self._compare_targets(findings, leg)
        self._compare_statistics(findings, leg)
        self._update.compare(findings, leg, self._legs)
        self._legs, self._steps = self._legs + 1, self._steps + int(leg.rollout.valid.sum())

    def _compare_starts(self, findings: Findings, leg: Leg) -> None:
        rollout = leg.rollout
        first = np.ones(rollout.reward.shape[1], bool) if self._starts is None else self._starts
        ended = (rollout.terminated | rollout.truncated).numpy()
        *starts, self._starts = formulas.episode_starts(first, ended, rollout.valid.numpy())
        findings.bits("episode starts", NUMPY, rollout.episode_start, torch.from_numpy(np.stack(starts)))

    @torch.inference_mode()
    def _compare_actions(self, findings: Findings, leg: Leg) -> None:
        """Actions must be the policy's samples from the noise of seed, step and row (S13, docs/semantics.md)."""
        rollout, head = leg.rollout, leg.policy.head
        steps, rows = rollout.reward.shape
        first = self._legs * steps
        drawn = formulas.action_uniforms(self._config.train.seed, range(first, first + steps), rows, head.noise_size)
        noise, state, wrong = head.noise(torch.from_numpy(drawn)), tuple(tensor[0] for tensor in rollout.state), 0
        for step in range(steps):
            obs = tree_map(lambda leaf, step=step: leaf[step], rollout.obs)
            mask = None if rollout.action_mask is None else rollout.action_mask[step]
            output = leg.policy(obs, state, rollout.episode_start[step], mask)
            wrong += count_other_actions(leg, rollout.action[step], output.distribution, noise[step])
            state = output.state
        findings.count(
            "actions", f"of the noise of seed, step and row, {NUMPY}", wrong, rollout.action.numel(), "differ"
        )

    def _compare_knobs(self, findings: Findings, leg: Leg) -> None:
        config, fraction = self._config, min(1.0, self._steps / self._config.train.steps)
        parts = config.ppo.terms | config.optimizer.transforms
        for name, given in leg.knobs.items():
            part, _, setting = name.rpartition(".")
            start = getattr(parts[part] if part else config.optimizer if name == "lr" else config.ppo, setting)
            schedule = config.schedules.get(name)
            expected = start if schedule is None else formulas.scheduled(schedule, start, fraction)
            if schedule is not None and expected is None:
                findings.uncovered(KNOBS, f"{name}, {NUMPY}", f"schedule '{schedule.kind}' depends on the updates")
            elif expected is not None:
                findings.within(KNOBS, f"of every update, {NUMPY}", given, expected, EXACT, max(abs(given), 1e-30))

    def _compare_targets(self, findings: Findings, leg: Leg) -> None:
        ppo, targets, valid = self._config.ppo, leg.targets, leg.rollout.valid.numpy()
        if ppo.estimator.kind != "gae":
            findings.uncovered(TARGETS, NUMPY, f"ppo.estimator is '{ppo.estimator.kind}'")
            if ppo.advantage_norm == "rollout":
                given = targets.advantage[valid].double().numpy()
                expected = formulas.normalized(given, given)  # what is normalized stays the same
                findings.within(
                    "advantages", f"normalized, {NUMPY}", targets.advantage[valid], expected, TOLERANCE, 1.0
                )
            return
        steps = self._scaled(_steps_of(leg)) if self._config.normalize.reward else _steps_of(leg)
        advantage = formulas.advantages(steps, ppo.gamma, ppo.gae_lambda)
        returns = advantage + steps.value
        scale = magnitude(torch.from_numpy(returns))
        findings.within(TARGETS, f"returns, {NUMPY}", targets.returns[valid], returns[valid], TOLERANCE, scale)
        what = "advantages"
        if ppo.advantage_norm == "rollout":
            among = advantage[valid]
            advantage, what = formulas.normalized(advantage, among), "normalized advantages"
            scale /= max(float(among.std()), 1e-8) if among.size > 1 else 1.0
        tolerance, scale = TOLERANCE, max(scale, 1.0)
        findings.within(TARGETS, f"{what}, {NUMPY}", targets.advantage[valid], advantage[valid], tolerance, scale)

    def _scaled(self, steps: Steps) -> Steps:
        """Rewards in units of the standard deviation of all discounted sums so far, clipped."""
        sums, self._carried = formulas.discounted_sums(steps, self._carried, self._config.ppo.gamma)
        self._sums = self._sums.with_samples(sums[steps.valid])
        clip = self._config.normalize.reward_clip
        return replace(steps, reward=np.clip(steps.reward / self._sums.deviation, -clip, clip))

    def _compare_statistics(self, findings: Findings, leg: Leg) -> None:
        """Statistics are frozen until the update is over; then the samples of the rollout are merged once (S10)."""
        acted, valid = statistics_of(leg.policy), leg.rollout.valid
        normalizers = _normalizers(leg.policy)
        samples = {name: leaf[valid] for name, leaf in _samples(leg).items()}
        if not normalizers:
            findings.skip(STATISTICS, "moments of observations", "normalize.obs and normalize.returns are off")
        for name, normalizer in normalizers.items():
            what = "returns" if name.startswith("critic") else "observations"
            if name not in samples:
                findings.uncovered(STATISTICS, f"'{name}', {NUMPY}", "verify does not know what it normalizes")
                continue
            before = self._statistics.get(name) or _pooled(acted, name)
            moves = what == "observations" or not _has_frozen_head(leg.policy, name)
            after = self._statistics[name] = before.with_samples(_numpy(samples[name])) if moves else before
            used = np.stack((_numpy(normalizer.shift), _numpy(normalizer.scale)))
            units = np.stack((before.mean, before.deviation))
            apart = (used - units) / np.abs(units).sum(0)
            findings.within(STATISTICS, f"units of {what}, {NUMPY}", apart, 0, TOLERANCE)
            tolerance = EXACT if what == "observations" else ROUNDING  # the other path's returns are in them
            moves_first = what == "returns" and self._config.normalize.return_stats == "current"
            during = [
                ("during the update", step.statistics, after if moves_first else before) for step in leg.update.steps
            ]
            for when, given, expected in (*during, ("after the update", leg.update.after, after)):
                what_then = f"moments of {what}, {when}, {NUMPY}"
                findings.within(STATISTICS, what_then, _apart(given, name, expected), 0, tolerance)


def _has_frozen_head(policy: Policy, normalizer: str) -> bool:
    """Whether the layer beside a normalizer of returns cannot be rescaled: then its statistics do not move."""
    critic = policy.get_submodule(normalizer.rpartition(".")[0])
    head = getattr(critic, "head", None)
    return isinstance(head, nn.Module) and not all(one.requires_grad for one in head.parameters())


def _pooled(statistics: dict[str, Tensor], name: str) -> Pooled:
    count, mean, var = (_numpy(statistics[f"{name}.{moment}"]) for moment in ("count", "mean", "var"))
    return Pooled(float(count), mean, var)


def _apart(given: dict[str, Tensor], name: str, expected: Pooled) -> NDArray[np.float64]:
    """Differences of all moments, relative to the scale of the samples."""
    size = np.sqrt(expected.var) + np.abs(expected.mean) + 1e-8
    scales = {"count": max(expected.count, 1.0), "mean": size, "var": size**2}
    pairs = (
        (_numpy(given[f"{name}.{moment}"]) - getattr(expected, moment)) / scale for moment, scale in scales.items()
    )
    return np.concatenate([np.ravel(apart) for apart in pairs])


def _normalizers(policy: Policy) -> dict[str, RunningNormalizer]:
    return {name: module for name, module in policy.named_modules() if isinstance(module, RunningNormalizer)}


def _samples(leg: Leg) -> dict[str, Tensor]:
    """What each normalizer absorbs `[T, N, ...]`, by the name of its module."""
    keys = {id(normalizer): key for key, normalizer in leg.policy.obs_normalizers().items()}
    leaves = dict(tree_items(leg.rollout.obs))
    found = {}
    for name, normalizer in _normalizers(leg.policy).items():
        if id(normalizer) in keys:
            found[name] = leaves[keys[id(normalizer)]]
        elif name.startswith("critic."):
            found[name] = leg.targets.returns
    return found


def _steps_of(leg: Leg) -> Steps:
    rollout = leg.rollout
    numbers = (_numpy(one) for one in (rollout.reward, rollout.value, rollout.final_value, rollout.last_value))
    reward, value, final_value, last_value = numbers
    flags = (one.numpy() for one in (rollout.terminated, rollout.truncated, rollout.valid))
    terminated, truncated, valid = flags
    return Steps(reward, value, final_value, last_value, terminated, truncated, valid)


def _numpy(tensor: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = tensor.detach().double().numpy()
    return array
