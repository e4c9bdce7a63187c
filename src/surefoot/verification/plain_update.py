"""The update of PyTorch's learner, against plain numpy: minibatches, losses, metrics and Adam."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.data.records import Rollout
from surefoot.data.tree import tree_items
from surefoot.settings.config import Config
from surefoot.verification import formulas
from surefoot.verification.legs import Leg
from surefoot.verification.nudges import TOLERANCE
from surefoot.verification.recording import Piece, Step, flat_moments
from surefoot.verification.report import Findings, magnitude
from surefoot.verification.rounding import LEARNING, ROUNDING, slack

Numbers = NDArray[np.int64]
MINIBATCHES, LOSSES, METRICS, OPTIMIZER = "minibatches", "losses", "metrics", "optimizer"
NUMPY = "against numpy"
_STEP = 10.0
"""Rounding of a step, in roundings of the learning rate."""


class PlainUpdate:
    """Follows the updates of one learner, each from the moments that Adam had before it."""

    def __init__(self, config: Config) -> None:
        self._config, optimizer, norm = config, config.optimizer, config.ppo.max_grad_norm
        self._adam = formulas.AdamW(
            (optimizer.betas[0], optimizer.betas[1]),
            optimizer.adam_eps,
            optimizer.weight_decay,
            optimizer.algorithm == "adamw",
            math.inf if norm is None else norm,
        )

    def compare(self, findings: Findings, leg: Leg, number: int) -> None:
        """Compare the update of a leg, which was recorded if the learner is PyTorch's; `number` counts updates."""
        steps = leg.update.steps
        if not steps or not steps[0].pieces:
            return
        _compare_ratio(findings, leg, steps[0].pieces[0])
        self._compare_minibatches(findings, leg, number)
        for step in steps:
            self._compare_advantages(findings, leg, step)
            for piece in step.pieces:
                _compare_fields(findings, leg, piece)
                self._compare_losses(findings, leg, step, piece)
        self._compare_metrics(findings, leg)
        self._compare_adam(findings, leg)

    def _compare_minibatches(self, findings: Findings, leg: Leg, number: int) -> None:
        """Every epoch takes every unit once, in the order of random words (S13, docs/semantics.md)."""
        ppo, rollout = self._config.ppo, leg.rollout
        units, taken = units_of(rollout), [_numbers(step.pieces) for step in leg.update.steps]
        total, longest = int(rollout.valid.sum()), max(map(len, units))
        epochs = [one for one in np.array_split(np.arange(len(taken)), ppo.epochs) if len(one)]
        for epoch, places in enumerate(epochs):
            order = formulas.shuffled(self._config.train.seed, number, epoch, len(units))
            expected = np.concatenate([units[unit] for unit in order])
            given = np.concatenate([taken[place] for place in places])
            missing = total - len(np.intersect1d(given, expected)) + abs(len(given) - total)
            findings.count(MINIBATCHES, f"every valid sample once per epoch, {NUMPY}", missing, total, "are not")
            edges = np.cumsum([0, *(len(taken[place]) for place in places)])
            pairs = zip(places, pairwise(edges), strict=True)
            others = sum(len(np.setdiff1d(taken[place], expected[slice(*edge)])) for place, edge in pairs)
            what = f"shuffled by seed, update and epoch, {NUMPY}"
            findings.count(MINIBATCHES, what, others, total, "samples are in another minibatch")
            sizes = [len(taken[place]) for place in places]
            wrong = sum(size >= ppo.batch_size + longest for size in sizes)
            wrong += max(0, len(sizes) - math.ceil(total / ppo.batch_size))
            findings.count(MINIBATCHES, f"sizes, {NUMPY}", wrong, len(sizes), "are too large or too many")

    def _compare_advantages(self, findings: Findings, leg: Leg, step: Step) -> None:
        """A minibatch normalizes its advantages before it is split into micro-batches, or not at all (S9)."""
        numbers, given = _numbers(step.pieces), torch.cat([piece.batch.advantage for piece in step.pieces]).double()
        raw, scale = leg.targets.advantage.flatten().double().numpy()[numbers], 1.0
        expected = raw
        if self._config.ppo.advantage_norm == "minibatch":
            expected = formulas.normalized(raw, raw)
            scale = max(1.0, float(np.abs(raw).max()) / max(float(raw.std()), 1e-8))
        scale *= magnitude(torch.from_numpy(expected))
        findings.within(MINIBATCHES, f"advantages, {NUMPY}", given, expected, TOLERANCE, scale)

    def _compare_losses(self, findings: Findings, leg: Leg, step: Step, piece: Piece) -> None:
        """Losses by their formulas, from the policy's output."""
        ppo, batch, output, knobs = self._config.ppo, piece.batch, piece.output, leg.knobs
        log_prob = output.distribution.log_prob(batch.action).detach()
        log_ratio, advantage = (log_prob - batch.log_prob).double().numpy(), batch.advantage.double().numpy()
        expected = formulas.policy_losses(log_ratio, advantage, knobs.clip)
        expected["entropy/loss"] = -float(output.distribution.entropy().double().mean())
        if self._config.policy.critic.kind == "scalar":
            shift, unit = _units(step)
            new, old, returns = (
                (raw.double().numpy() - shift) / unit for raw in (output.value, batch.value, batch.returns)
            )
            expected["value/loss"] = formulas.value_loss(new, old, returns, ppo.clip_value)
        else:
            findings.uncovered(LOSSES, f"value/loss, {NUMPY}", f"policy.critic is '{self._config.policy.critic.kind}'")
        for name, value in expected.items():
            least = 1.5 / len(batch) if name.endswith("clip_fraction") else ROUNDING * slack(leg) * max(1.0, abs(value))
            findings.within(LOSSES, f"{name}, {NUMPY}", float(piece.losses.watched[name]), value, least, 1.0)
        weights = {"surrogate": knobs.surrogate_coef, "value": knobs.value_coef, "entropy": knobs.entropy_coef}
        weights |= {name: knobs.get(f"{name}.weight", 1.0) for name in ppo.terms}
        total = sum(weight * float(piece.losses.watched[f"{name}/loss"]) for name, weight in weights.items())
        what = f"weighted sum of all terms, {NUMPY}"
        findings.within(LOSSES, what, float(piece.losses.total), total, ROUNDING * max(1, abs(total)), 1.0)

    def _compare_metrics(self, findings: Findings, leg: Leg) -> None:
        """Metrics are means over the samples of an epoch, then over epochs; the KL divergence is that of the last."""
        learned, rollout, epochs = leg.update.learned, leg.rollout, self._config.ppo.epochs
        pieces = [piece for step in leg.update.steps for piece in step.pieces]
        shares = np.array([len(piece.batch) for piece in pieces]) / int(rollout.valid.sum())
        last = np.cumsum(shares) > epochs - 1 + shares / 2
        for name, given, weight in (
            ("surrogate/loss", learned.policy_loss, shares / epochs),
            ("value/loss", learned.value_loss, shares / epochs),
            ("entropy/loss", -learned.entropy, shares / epochs),
            ("surrogate/approx_kl", learned.approx_kl, shares * last),
        ):
            mean = float(np.dot([float(piece.losses.watched[name]) for piece in pieces], weight))
            findings.within(METRICS, f"means over samples, {NUMPY}", given, mean, ROUNDING * max(1, abs(mean)), 1.0)
        returns, value = (one[rollout.valid].double().numpy() for one in (leg.targets.returns, rollout.value))
        if returns.var() > 0:
            explained = 1 - (returns - value).var() / returns.var()
            what, least = f"explained variance, {NUMPY}", ROUNDING * max(1, abs(explained))
            findings.within(METRICS, what, learned.explained_variance, explained, least, 1.0)

    def _compare_adam(self, findings: Findings, leg: Leg) -> None:
        """The clipped gradient, then Adam, from the recorded weights and gradient of every step."""
        config, steps = self._config, leg.update.steps
        optimizer = config.optimizer
        if optimizer.transforms or optimizer.frozen or optimizer.clip_grad == "apart":
            others = "parameters are frozen or clipped apart"
            findings.uncovered(OPTIMIZER, NUMPY, "there are gradient transforms" if optimizer.transforms else others)
            return
        if moments := flat_moments(leg.before["gradient"]):
            self._adam.mean, self._adam.square = (moment.double().numpy() for moment in moments.values())
        after = [*(step.weights for step in steps[1:]), leg.update.weights]
        rescales = config.normalize.returns and config.normalize.return_stats == "previous"
        for place, (step, given) in enumerate(zip(steps, after, strict=True)):
            weights, gradient = step.weights.double().numpy(), step.gradient.double().numpy()
            expected = self._adam.step(weights, gradient, leg.knobs.lr)
            if rescales and place == len(steps) - 1:
                continue  # the critic's last layer was rescaled since
            apart = (given.double().numpy() - expected) / (np.abs(weights) + _STEP * leg.knobs.lr + 1e-30)
            findings.within(OPTIMIZER, f"clipped norm and Adam, {NUMPY}", apart, 0, TOLERANCE)
        for given, moment in zip(leg.update.moments.values(), (self._adam.mean, self._adam.square), strict=True):
            size = float(np.abs(moment).max()) + 1e-30
            findings.within(OPTIMIZER, f"Adam's moments, {NUMPY}", given, moment, LEARNING, size)


def units_of(rollout: Rollout) -> list[Numbers]:
    """What is shuffled, as numbers of samples: valid steps, or for recurrent policies sequences, row by row.

    A sequence ends with its episode, before an invalid step, and with its chunk of the rollout (S6).
    """
    valid, starts = rollout.valid.numpy(), rollout.episode_start.numpy()
    steps, rows = valid.shape
    if rollout.chunks is None:
        return [np.array([number]) for number in np.flatnonzero(valid)]
    found: list[list[int]] = []
    for row in range(rows):
        for t in range(steps):
            begins = t % rollout.chunks.length == 0 or starts[t, row] or not valid[t - 1, row]
            if valid[t, row] and begins:
                found.append([])
            if valid[t, row]:
                found[-1].append(t * rows + row)
    return [np.array(unit) for unit in found]


def _units(step: Step) -> tuple[float, float]:
    """Mean and standard deviation of the returns, which the critic learns in units of if they are normalized (S11)."""
    if "critic.returns.mean" not in step.statistics:
        return 0.0, 1.0
    mean, var = (step.statistics[f"critic.returns.{name}"].double().numpy() for name in ("mean", "var"))
    return float(mean), math.sqrt(var + 1e-8)


def _compare_ratio(findings: Findings, leg: Leg, piece: Piece) -> None:
    """At the first gradient step the policy is still the one that acted (S7), whatever was absorbed before (S11)."""
    batch, output = piece.batch, piece.output
    log_prob = output.distribution.log_prob(batch.action)
    for what, ours, stored in (("log-probs", log_prob, batch.log_prob), ("values", output.value, batch.value)):
        findings.within("ratio one", f"{what}, at the first gradient step", ours, stored, ROUNDING * slack(leg))


def _compare_fields(findings: Findings, leg: Leg, piece: Piece) -> None:
    """Every sample has the observation, action, log-prob, value and return of one and the same step."""
    batch, rollout, numbers = piece.batch, leg.rollout, piece.samples
    pairs = [(getattr(batch, name), getattr(rollout, name)) for name in ("action", "log_prob", "value", "action_mask")]
    pairs += [(batch.returns, leg.targets.returns)]
    recorded = dict(tree_items(rollout.obs))
    pairs += [(leaf, recorded[key]) for key, leaf in tree_items(batch.obs)]
    for ours, whole in pairs:
        if whole is not None:
            expected = whole.flatten(0, 1)[numbers]
            findings.bits(MINIBATCHES, f"fields of every sample, {NUMPY}", ours.contiguous(), expected.contiguous())


def _numbers(pieces: Sequence[Piece]) -> Numbers:
    numbers: Numbers = torch.cat([piece.samples for piece in pieces]).numpy()
    return numbers
