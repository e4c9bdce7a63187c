"""The KL penalty, in both learners, and together with everything else that limits the KL divergence."""

from typing import Any

import pytest
import torch

from surefoot import PPO
from surefoot.data.records import Knobs, Learned
from surefoot.learning.terms.surrogate import approx_kl
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, both, config_of, knobs_of
from tests.learning.test_native_learner import GRU, TOLERANCE, assert_alike, learn_apart

PENALTY = {"ppo.terms": {"kl": {"kind": "kl_penalty", "weight": 0.5}}}


def test_the_gradient_over_old_samples_is_that_of_the_kl():
    """Samples in exact proportion to the old policy: 1, 3 and 4 of eight."""
    old = torch.tensor([1.0, 3.0, 4.0], dtype=torch.float64) / 8
    logits = torch.tensor([0.3, -0.2, 0.9], dtype=torch.float64, requires_grad=True)
    actions = torch.tensor([0, 1, 1, 1, 2, 2, 2, 2])
    log_prob = logits.log_softmax(0)
    (estimated,) = torch.autograd.grad(approx_kl(log_prob[actions] - old.log()[actions]), logits, retain_graph=True)
    (exact,) = torch.autograd.grad((old * (old.log() - log_prob)).sum(), logits)
    torch.testing.assert_close(estimated, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("action", "settings"),
    [(CHOICES, {}), (THREE_ACTIONS, {"ppo.micro_batch_size": 13}), (CHOICES, {"policy.memory": GRU})],
    ids=["choices", "micro-batches", "memory"],
)
def test_both_learners_penalize_alike(action: Any, settings: dict[str, Any]):
    assert_alike(SEVEN, action, **PENALTY, **settings)


def test_the_penalty_changes_the_update_and_is_measured():
    found = {}
    for weight in (0.0, 5.0):
        native, readable, *learned = both(SEVEN, CHOICES, **PENALTY, **{"ppo.epochs": 8})
        knobs = Knobs(knobs_of(config_of("torch")), **{"kl.weight": weight})
        assert learn_apart(native, readable, *learned, knobs) < TOLERANCE
        found[weight] = native.learn(*learned, knobs)
    assert found[0.0].metrics["kl/loss"] > 0, "it is measured without a weight, too"
    assert found[5.0].approx_kl < 0.7 * found[0.0].approx_kl
    assert found[5.0].metrics["kl/weight"] == 5.0


def test_learning_rate_penalty_and_early_stop_work_together():
    """The learning rate falls, the weight rises, and epochs are cut: from the same KL divergence."""
    settings: dict[str, Any] = {
        "num_envs": 4,
        "num_steps": 32,
        "batch_size": 32,
        "epochs": 10,
        "hidden": [8],
        "lr": 0.01,
        "target_kl": 0.01,
        "eval_episodes": 0,
        "train.learner": "native",
        "schedules": {
            "lr": {"kind": "kl_adaptive", "desired_kl": 0.005},
            "kl.weight": {"kind": "kl_penalty", "desired_kl": 0.005},
        },
    }
    found: list[Learned] = []
    PPO("CartPole-v1", **settings, **PENALTY).learn(4 * 128, hooks=[lambda report: found.append(report.learned)])
    lr, weight = 0.01, 0.5
    for learned in found:
        assert learned.lr == pytest.approx(lr)
        assert learned.metrics["kl/weight"] == pytest.approx(weight)
        assert learned.epochs == 10 or learned.approx_kl > 0.01
        lr *= 1 / 1.5 if learned.approx_kl > 0.01 else 1.5 if learned.approx_kl < 0.0025 else 1
        weight *= 2 if learned.approx_kl > 0.0075 else 0.5 if learned.approx_kl < 0.005 / 1.5 else 1
    assert min(learned.epochs for learned in found) < 10
    assert min(learned.lr for learned in found) < 0.01
    assert max(learned.metrics["kl/weight"] for learned in found) > 0.5
