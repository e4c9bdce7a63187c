"""The core's policy against torch's: outputs, noise and actions for the same observations."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.tree import tree_items
from surefoot.native import core
from surefoot.philox import Stream, uniforms
from surefoot.policies.distributions import Distribution, DistributionHead
from surefoot.policies.native_plan import native_tensors
from surefoot.policies.policy import PolicyOutput
from surefoot.rollout.samples import samples_of
from surefoot.settings.config import PPOConfig
from surefoot.verification.legs import Leg
from surefoot.verification.recorded import ToEnv
from surefoot.verification.report import Findings, magnitude
from surefoot.verification.rounding import ROUNDING, slack, torch_output, torch_states

NOISE_ROUNDING = 2.0**-22
"""Normals are computed in float64 and rounded once: two implementations may differ in the last place."""
EDGE = 1e-5
"""Distance of the noise from the boundary between two choices within which rounding may decide."""


def compare_policy(findings: Findings, leg: Leg, core_policy: Any, seed: int) -> None:
    """Compare every step from an observation to an action."""
    with torch.inference_mode():
        output = torch_output(leg)
        noise = _compare_noise(findings, leg, core_policy, seed)
        _compare_outputs(findings, leg, core_policy, output, seed)
        _compare_actions(findings, leg, output.distribution, noise)
        recorded = leg.rollout.action.flatten(0, 1)
        ours, reference = core_to_env(core_policy, leg.policy.head)(recorded), leg.policy.head.to_env(recorded)
        findings.within("actions", "in the env's range", ours, reference, NOISE_ROUNDING)


def compare_ratio(findings: Findings, leg: Leg, ppo: PPOConfig) -> None:
    """Log-probs and values recomputed before the first step must equal the stored ones (S7, docs/semantics.md)."""
    # With the learner's samples and with gradients: neither may change the numbers.
    samples = samples_of(leg.rollout, leg.targets, ppo)
    samples.begin_epoch(leg.policy)
    (batch,) = samples.minibatches(len(samples.batch))
    output: PolicyOutput = leg.policy(*batch.inputs)
    for what, ours, reference in (
        ("log-probs, recomputed", output.distribution.log_prob(batch.action), batch.log_prob),
        ("values, recomputed", output.value, batch.value),
    ):
        findings.within("ratio one", what, ours.detach(), reference, ROUNDING * slack(leg))


def synced(plan: Any, leg: Leg) -> Any:
    """The core's policy with the weights that acted in a leg."""
    policy = core().Policy(plan)
    policy.sync(native_tensors(leg.policy))  # type: ignore[arg-type]
    return policy


def core_to_env(core_policy: Any, head: DistributionHead) -> ToEnv:
    """The core's mapping to the env's range; torch's tanh may round differently, which would change trajectories."""
    if core_policy.is_discrete:
        return head.to_env
    return lambda action: torch.from_numpy(core_policy.to_env(action.numpy())).view(-1, *head.env_shape)


def _compare_noise(findings: Findings, leg: Leg, core_policy: Any, seed: int) -> Tensor:
    """Compare the uniforms and the noise that the head makes from them; returns the noise `[T N, ...]`."""
    steps, rows = leg.rollout.reward.shape
    head, range_of_steps = leg.policy.head, range(leg.first_step, leg.first_step + steps)
    drawn = torch.from_numpy(uniforms(seed, np.array(range_of_steps), np.arange(rows), head.noise_size, Stream.ACTION))
    drawn_there: Any = core()
    ours = [drawn_there.uniforms(seed, step, 0, rows, head.noise_size, int(Stream.ACTION)) for step in range_of_steps]
    findings.bits("noise", "Philox uniforms", torch.from_numpy(np.stack(ours)), drawn)
    noise = head.noise(drawn)
    ours = [core_policy.noise(rows, seed=seed, step=step) for step in range_of_steps]
    reference = noise.reshape(steps, rows, -1)
    given = torch.from_numpy(np.stack(ours)).reshape(reference.shape)
    findings.within("noise", "the head's noise", given, reference, NOISE_ROUNDING)
    return noise.flatten(0, 1)


def _compare_outputs(findings: Findings, leg: Leg, core_policy: Any, output: PolicyOutput, seed: int) -> None:
    rollout, acted, states = leg.rollout, [], torch_states(leg)
    tolerance = ROUNDING * slack(leg)
    for step in range(len(rollout.reward)):
        leaves = [leaf[step].flatten(1).contiguous().numpy() for _, leaf in tree_items(rollout.obs)]
        mask = None if rollout.action_mask is None else rollout.action_mask[step].contiguous().numpy()
        state = [tensor.flatten(1).clone() for tensor in states[step]]
        remembers = {
            "state": [tensor.numpy() for tensor in state],
            "episode_start": rollout.episode_start[step].numpy(),
        }
        acted.append(core_policy.act(leaves, mask, seed=seed, step=leg.first_step + step, **remembers if state else {}))
        for tensor, expected in zip(state, states[step + 1], strict=True):
            findings.within("policy outputs", "memory", tensor, expected.flatten(1), tolerance)
    action, log_prob, value = (torch.from_numpy(np.concatenate(tensors)) for tensors in zip(*acted, strict=True))
    reference = output.distribution.log_prob(action.reshape(-1, *rollout.action.shape[2:]))
    findings.within("policy outputs", "values", value, output.value, tolerance)
    findings.within("policy outputs", "log-probs", log_prob, reference, tolerance)


def _compare_actions(findings: Findings, leg: Leg, distribution: Distribution, noise: Tensor) -> None:
    recorded = leg.rollout.action.flatten(0, 1)
    wrong = count_other_actions(leg, recorded, distribution, noise)
    findings.count("actions", "of the same noise", wrong, recorded.numel(), "differ")


def count_other_actions(leg: Leg, recorded: Tensor, distribution: Distribution, noise: Tensor) -> int:
    """Recorded actions must equal torch's samples from the same noise, except where rounding decides between two."""
    sampled = distribution.sample(noise)
    if recorded.is_floating_point():
        apart = (recorded - sampled).abs() > ROUNDING * slack(leg) * magnitude(sampled)
    else:
        apart = recorded != sampled
    is_uniform = bool((noise >= 0).all() and (noise < 1).all())
    for nudge in (-EDGE, EDGE):
        nudged = distribution.sample((noise + nudge).clamp(0, 1) if is_uniform else noise + nudge)
        apart &= ~((recorded - nudged).abs() <= 10 * EDGE if recorded.is_floating_point() else recorded == nudged)
    return int(apart.sum())
