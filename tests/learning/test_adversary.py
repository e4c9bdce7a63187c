"""The term `adversary`: its gradient, what it costs, where it is learned, and that a run with it can be resumed."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot import PPO, Distribution
from surefoot.data.records import Batch, Knobs, Progress
from surefoot.data.tree import tree_map
from surefoot.errors import ConfigError, PolicyError
from surefoot.learning.attacks import Attack, Neighborhood
from surefoot.learning.schedules import Schedules
from surefoot.learning.terms import Minibatch, Objective, TermLoss
from surefoot.learning.terms.adversary import Adversary
from surefoot.policies.distributions.gaussian import Gaussian, GaussianHead
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import num_units
from surefoot.settings.layers import build_config
from tests.cli.processes import surefoot
from tests.cli.runs import column, newest
from tests.learning.test_attacks import CASES, made
from tests.training.states import assert_same

EPSILON, STEPS = 0.1, 32


def term(**settings: Any) -> Adversary:
    objective = Objective.of(build_config({"ppo.terms": {"adversary": settings}}).ppo)
    found = objective.terms["adversary"]
    assert isinstance(found, Adversary)
    return found


def loss_of(adversary: Adversary, policy: Policy, batch: Batch, epsilon: float = EPSILON) -> TermLoss:
    knobs = Knobs({"adversary.epsilon": epsilon})
    return adversary.loss(Minibatch(policy, batch, policy(*batch.inputs), knobs))


def small(env: str = "Pendulum-v1", **settings: Any) -> PPO:
    """Iterations of 32 steps."""
    common = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": [8], "eval_episodes": 0}
    return PPO(env, **{**common, "train.threads": 1, **settings})


def gradients(loss: Tensor, policy: Policy) -> dict[str, Tensor]:
    named = {name: one for name, one in policy.named_parameters() if one.requires_grad}
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: slope for name, slope in zip(named, found, strict=True) if slope is not None}


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_finite_differences(name: str, monkeypatch: pytest.MonkeyPatch):
    """Of mean KL(pi(s) || pi(s + delta)) at the delta that was found, with pi(s) held fixed."""
    policy, batch = made(name)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # the policy computes in float64 throughout
    policy.double()
    doubled = {"obs": tree_map(lambda leaf: leaf.double() if leaf.is_floating_point() else leaf, batch.obs)}
    batch = Batch(**{**vars(batch), **doubled, "state": tuple(part.double() for part in batch.state)})
    result = loss_of(term(), policy, batch)
    around = Neighborhood(policy, batch.inputs)
    delta = around.worst(around.start(0, 0, EPSILON), Attack("pgd", EPSILON, 3))
    torch.testing.assert_close(around.divergence(delta).mean(), result.loss)
    assert not result.metrics["share"].requires_grad
    found = gradients(result.loss, policy)
    assert any(key.startswith("actor_body") for key in found)
    assert not any(key.startswith("critic") for key in found)
    for key, slope in found.items():
        parameter = dict(policy.named_parameters())[key]
        place = int(slope.abs().argmax())
        assert slope.flatten()[place].item() == pytest.approx(_slope(around, delta, parameter, place), rel=1e-4), key


@torch.no_grad()
def _slope(around: Neighborhood, delta: Tensor, parameter: Tensor, place: int, step: float = 1e-6) -> float:
    sides = []
    for sign in (1, -1):
        parameter.view(-1)[place] += sign * step
        sides.append(around.divergence(delta).mean().item())
        parameter.view(-1)[place] -= sign * step
    return (sides[0] - sides[1]) / (2 * step)


@pytest.mark.parametrize("name", ["flat", "lstm"])
def test_only_a_share_is_attacked(name: str):
    policy, batch = made(name)
    runs: list[int] = []
    policy.register_forward_hook(lambda module, inputs, output: runs.append(len(inputs[2])))
    result = loss_of(term(share=0.5, method="fgsm"), policy, batch)
    share = result.metrics["share"].item()
    assert share == pytest.approx(0.5, abs=0.5 if name == "lstm" else 1 / len(batch))
    # The whole minibatch for all terms; then clean, one step, and the result.
    assert runs == [len(batch), *[round(share * len(batch))] * 3]
    one = loss_of(term(share=1e-3), policy, batch).metrics["share"].item()
    assert 0 < one * len(batch) <= len(batch) / num_units(batch) + 8, "at least one"


def test_samples_and_starts_change_from_minibatch_to_minibatch():
    policy, batch = made("flat")
    adversary = term(share=0.5, steps=1, step_size=0.1)
    first, second = (loss_of(adversary, policy, batch).loss.item() for _ in range(2))
    assert first != second
    assert adversary.state() == {"count": 2}
    other = term(share=0.5, steps=1, step_size=0.1)
    other.load_state({"count": 1})
    assert loss_of(other, policy, batch).loss.item() == second


def test_an_epsilon_of_0_costs_nothing():
    policy, batch = made("flat")
    runs: list[int] = []
    policy.register_forward_hook(lambda *call: runs.append(1))
    adversary = term()
    off, on = (loss_of(adversary, policy, batch, epsilon) for epsilon in (0.0, EPSILON))
    assert len(runs) == 1 + 1 + 3 + 1 + 1, "once for all terms, twice; then clean, three steps, and the result"
    assert off.loss == 0
    assert set(off.metrics) == set(on.metrics) == {"kl", "max_kl", "share"}
    assert on.metrics["max_kl"] > on.metrics["kl"] == on.loss


def test_it_makes_policies_smoother():
    def trained(weight: float) -> float:
        agent = small(lr=0.01, **{"ppo.terms": {"adversary": {"weight": weight, "epsilon": 0.2}}})
        agent.learn(20 * STEPS, hooks=[lambda report: seen.append(report.learned.metrics)])
        return seen[-1]["adversary/kl"]

    seen: list[dict[str, float]] = []
    assert trained(10.0) < 0.5 * trained(0.0)
    assert seen[-1]["adversary/epsilon"] == 0.2
    assert seen[-1]["adversary/share"] == 1


def test_it_is_learned_by_pytorch_and_says_so():
    adversary = {"ppo.terms": {"adversary": {}}}
    assert small(**adversary)._started().learner.description == (
        "PyTorch (the term Adversary has no native implementation)"
    )
    with pytest.raises(ConfigError, match=r"train\.learner: cannot be native: the term Adversary has no native"):
        small(**adversary, **{"train.learner": "native"})._started()


def test_a_distribution_without_a_divergence_is_named():
    agent = small(**{"ppo.terms": {"adversary": {}}, "policy.distribution": f"{__name__}:OwnHead"})
    with pytest.raises(PolicyError, match=r"the distribution Own has no KL divergence; define kl_divergence\(other\)"):
        agent.learn(STEPS)


class Own(Gaussian):
    kl_divergence = Distribution.kl_divergence


class OwnHead(GaussianHead):
    def forward(self, latent: Tensor, action_mask: Tensor | None = None) -> Own:
        gaussian = super().forward(latent)
        assert isinstance(gaussian, Gaussian)
        return Own(gaussian.mean, gaussian.std)


def test_epsilon_has_schedules_and_a_warmup():
    def epsilons(schedule: Any) -> list[float]:
        config = build_config(
            {"ppo.terms": {"adversary": {"epsilon": 0.2}}, "schedules": {"adversary.epsilon": schedule}}
        )
        return [Schedules(config).at(Progress(step, 100))["adversary.epsilon"] for step in (0, 10, 20, 50, 100)]

    assert epsilons("linear") == pytest.approx([0.2, 0.18, 0.16, 0.1, 0])
    assert epsilons({"kind": "warmup", "share": 0.2}) == pytest.approx([0, 0.1, 0.2, 0.2, 0.2])
    cosine = epsilons({"kind": "cosine", "floor": 0.25})
    rise = [0, 0.5, 1, 1, 1]
    then = epsilons({"kind": "warmup", "share": 0.2, "then": {"kind": "cosine", "floor": 0.25}})
    assert then == pytest.approx([one * two for one, two in zip(rise, cosine, strict=True)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -0.1}, r"ppo\.terms\.adversary\.epsilon: .*greater than or equal to 0"),
        ({"method": "pdg"}, r"ppo\.terms\.adversary\.method: .*'fgsm' or 'pgd'"),
        ({"share": 0}, r"ppo\.terms\.adversary\.share: .*greater than 0"),
        ({"kappa": 1}, r"ppo\.terms\.adversary\.kappa: unknown"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        build_config({"ppo.terms": {"adversary": settings}})


def test_a_wrong_schedule_after_the_warmup_is_refused():
    layer = {"ppo.terms": {"adversary": {}}}
    for then, message in [
        ("cosin", "unknown schedule 'cosin'"),
        ({"kind": "cosine", "floor": 2}, "less than or equal"),
    ]:
        with pytest.raises(ConfigError, match=rf"schedules\.adversary\.epsilon\.then.*{message}"):
            build_config(layer, {"schedules": {"adversary.epsilon": {"kind": "warmup", "then": then}}})


def test_a_run_with_memory_masks_and_dicts_is_resumed_bit_for_bit(tmp_path: Path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        """
env: {id: Probe-v0, kwargs: {action: discrete}, max_episode_steps: 11}
rollout: {num_envs: 2, num_steps: 16, sequence_length: 8}
policy: {hidden: [8], memory: {kind: lstm, hidden_size: 4}, orthogonal_init: false}
ppo:
  batch_size: 16
  epochs: 2
  terms: {adversary: {epsilon: 0.2, weight: 1.0, share: 0.5, steps: 2}}
schedules:
  adversary.epsilon: {kind: warmup, share: 0.5, then: {kind: kl_adaptive, high: 1}}
normalize: {obs: true}
train: {steps: 128, eval_episodes: 2, checkpoint_every: 32, threads: 1}
log: {console: plain, tensorboard: false}
"""
    )
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for run in (whole, cut):
        surefoot("train", "--config", file, "--run-dir", run).succeeded()
    (cut / "checkpoints" / "step_000000000128.safetensors").unlink()
    (cut / "checkpoints" / "step_000000000096.safetensors").unlink()
    surefoot("resume", cut).succeeded()
    one, two = newest(whole), newest(cut)
    assert_same({name: two[name] for name in one if name != "config"}, {n: one[n] for n in one if n != "config"})
    assert one["objective"]["adversary"]["count"] > 6, "none in the first iteration, whose epsilon is 0"
    assert column(whole, "adversary/epsilon")[0] == 0 < column(whole, "adversary/epsilon")[1]
    assert column(whole, "adversary/kl")[0] == 0 < min(column(whole, "adversary/kl")[1:])
    assert column(cut, "adversary/kl")[-2:] == column(whole, "adversary/kl")[-2:]
    assert "learning: PyTorch (the term Adversary has no native implementation)" in (whole / "log.txt").read_text()
    shown = surefoot("evaluate", whole, "--attack", "pgd", "--epsilon", 0.5, "--episodes", 3).succeeded().out
    assert "attack          pgd, epsilon 0.5, 10 steps" in shown
