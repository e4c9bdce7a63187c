"""Attacks on observations: inside the ball, worse than noise, through memory, and without a trace in the policy."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot.compose import Specs, build_policy
from surefoot.data.records import Batch
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.data.tree import tree_items, tree_map
from surefoot.errors import ConfigError, PolicyError
from surefoot.learning.attacks import Attack, Neighborhood, attacker
from surefoot.policies.policy import Policy
from surefoot.rollout.samples import num_units, samples_of, some_units
from tests.learning.made_up import CHOICES, SEVEN, THREE_ACTIONS, config_of, made_rollout, moved

EPSILON = 0.1
MIXED: ObsSpec = {
    "speed": ArraySpec("box", (3,), "float32"),
    "map": ArraySpec("box", (2, 2), "float32"),
    "gear": ArraySpec("discrete", (), "int64", sizes=(4,)),
    "lamps": ArraySpec("multi_binary", (3,), "float32", 0.0, 1.0),
    "hidden": ArraySpec("box", (2,), "float32"),
}
CASES: dict[str, tuple[ObsSpec, ArraySpec, dict[str, Any]]] = {
    "flat": (SEVEN, THREE_ACTIONS, {}),
    "masked": (SEVEN, CHOICES, {}),
    "lstm": (SEVEN, THREE_ACTIONS, {"policy__memory": "lstm"}),
    "gru": (MIXED, CHOICES, {"policy__memory": "gru"}),
    "dict": (MIXED, THREE_ACTIONS, {"policy__critic_obs": ("hidden",), "policy__distribution": "beta"}),
}
ATTACKS = [Attack("fgsm", EPSILON), Attack("pgd", EPSILON), Attack("pgd", EPSILON, steps=20)]


def made(name: str) -> tuple[Policy, Batch]:
    """A policy far from its initial weights, with statistics of observations, and a minibatch for it."""
    obs, action, own = CASES[name]
    config = config_of("torch", normalize__obs=True, **own)
    policy = moved(build_policy(config, Specs(obs, action)))
    rollout, targets = made_rollout(policy, obs, action, masked=action is CHOICES)
    samples = samples_of(rollout, targets, config.ppo)
    policy.absorb_obs(tree_map(lambda leaf: 3 * leaf, samples.batch.obs))
    return policy, next(samples.minibatches(48))


def found(policy: Policy, batch: Batch, attack: Attack, count: int = 0) -> tuple[Neighborhood, Tensor]:
    around = Neighborhood(policy, batch.inputs)
    return around, around.worst(around.start(seed=5, count=count, epsilon=attack.epsilon), attack)


@pytest.mark.parametrize("name", CASES)
def test_attacks_stay_in_the_ball_and_beat_noise(name: str):
    policy, batch = made(name)
    around = Neighborhood(policy, batch.inputs)
    start = around.start(seed=5, count=0, epsilon=EPSILON)
    assert start.abs().max() <= EPSILON
    with torch.no_grad():
        noise = float(around.divergence(start).mean())
        deltas = [around.worst(start, attack) for attack in ATTACKS]
        fgsm, pgd, longer = (float(around.divergence(delta).mean()) for delta in deltas)
    for delta in deltas:
        assert delta.abs().max() <= EPSILON
        _check_radius(policy, batch, around.obs(delta))
    assert 0 <= noise < fgsm
    assert fgsm <= pgd * 1.01
    assert fgsm <= longer * 1.01


def _check_radius(policy: Policy, batch: Batch, attacked: Any) -> None:
    """In normalized units, up to rounding, nothing moves by more than epsilon; the rest does not move at all."""
    units, seen = policy.obs_units(batch.obs), dict(tree_items(attacked))
    for key, leaf in tree_items(batch.obs):
        if key in units:
            distance = (seen[key] - leaf).abs() / units[key]
            assert 0.9 * EPSILON < distance.max() <= EPSILON * (1 + 1e-4)
        else:
            assert torch.equal(seen[key], leaf)


def test_what_is_attacked():
    policy, batch = made("dict")
    assert set(policy.obs_units(batch.obs)) == {"speed", "map"}, "not what is discrete, binary, or only the critic's"
    policy, batch = made("flat")
    units = policy.obs_units(batch.obs)
    assert list(units) == [""]
    assert (units[""] > 2).all(), "the standard deviation of the observations"
    assert torch.equal(Policy.obs_units(_Plain(), batch.obs)[""], torch.ones(()))


class _Plain(Policy):
    """A policy of one's own without statistics."""


def test_an_observation_without_numbers_is_refused():
    gear = ArraySpec("discrete", (), "int64", sizes=(4,))
    policy = build_policy(config_of("torch"), Specs(gear, CHOICES))
    inputs = (torch.tensor([1, 2]), (), torch.zeros(2, dtype=torch.bool))
    with pytest.raises(PolicyError, match="no continuous part to perturb: images, discrete and binary"):
        Neighborhood(policy, inputs)


@pytest.mark.parametrize("name", CASES)
def test_attacks_leave_no_trace(name: str):
    policy, batch = made(name)
    before, obs = {key: value.clone() for key, value in policy.state_dict().items()}, tree_map(torch.clone, batch.obs)
    for grad_enabled in (True, False):
        with torch.set_grad_enabled(grad_enabled):
            _, delta = found(policy, batch, Attack("pgd", EPSILON))
        assert not delta.requires_grad
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert all(torch.equal(value, before[key]) for key, value in policy.state_dict().items())
    for key, leaf in tree_items(batch.obs):
        assert torch.equal(leaf, dict(tree_items(obs))[key])


def test_starts_are_counted():
    policy, batch = made("dict")
    around = Neighborhood(policy, batch.inputs)
    first = around.start(5, 0, EPSILON)
    assert torch.equal(around.start(5, 0, EPSILON), first)
    for other in (around.start(5, 1, EPSILON), around.start(6, 0, EPSILON)):
        assert not torch.isclose(other, first).all()
    few = Neighborhood(policy, some_units(batch, torch.arange(3)).inputs)
    assert torch.equal(few.start(5, 0, EPSILON), first[:3]), "a row does not depend on how many there are"


def test_a_perturbation_reaches_later_steps_through_the_hidden_state():
    policy, batch = made("lstm")
    around = Neighborhood(policy, batch.inputs)
    first = int(batch.batch_sizes[0])
    assert len(batch.batch_sizes) > 3
    delta = torch.zeros_like(around.start(0, 0, EPSILON)).requires_grad_()
    with torch.no_grad():
        delta[:first] = EPSILON
    later = around.divergence(delta)[first:]
    assert later.max() > 1e-5, "the first observations alone change what is done afterwards"
    (slope,) = torch.autograd.grad(later.sum(), delta)
    assert slope[:first].abs().max() > 1e-5, "and the attack knows it"


def test_sequences_are_attacked_as_a_whole():
    """Step by step, each against its own moment, finds less than all steps of a sequence together."""
    policy, batch = made("lstm")
    around, together = found(policy, batch, Attack("pgd", EPSILON, steps=10))
    state = tuple(part.clone() for part in batch.state)
    alone, begin = [], 0
    for number, size in enumerate(batch.batch_sizes.tolist()):
        state = tuple(part[:size] for part in state)
        here = slice(begin, begin + size)
        start = batch.episode_start[here] if number == 0 else torch.zeros(size, dtype=torch.bool)
        step = replace(batch, obs=batch.obs[here], state=state, episode_start=start, action_mask=None, batch_sizes=None)
        near, delta = found(policy, step, Attack("pgd", EPSILON, steps=10))
        with torch.no_grad():
            state = policy(near.obs(delta), *step.inputs[1:]).state
        alone.append(delta)
        begin += size
    with torch.no_grad():
        greedy, whole = (float(around.divergence(delta).mean()) for delta in (torch.cat(alone), together))
    assert whole > greedy


def test_some_sequences_are_complete_sequences():
    policy, batch = made("lstm")
    chosen = torch.tensor([3, 0, num_units(batch) - 1])
    part = some_units(batch, chosen)
    assert num_units(part) == 3
    with torch.no_grad():
        whole, some = policy(*batch.inputs), policy(*part.inputs)
    for after, of_part in zip(whole.state, some.state, strict=True):
        torch.testing.assert_close(of_part, after[chosen.sort().values])


def test_an_attacker_counts_its_steps():
    policy, batch = made("masked")
    inputs = (batch.obs, (), batch.episode_start, batch.action_mask)
    first, again = (attacker(policy, Attack("pgd", EPSILON, 2, 0.3), seed=1) for _ in range(2))
    seen = [first(*inputs), first(*inputs)]
    assert not torch.equal(*seen)
    assert torch.equal(again(*inputs), seen[0])
    assert torch.equal(again(*inputs), seen[1])


def test_epsilon_0_moves_nothing():
    policy, batch = made("flat")
    around, delta = found(policy, batch, Attack("pgd", 0.0))
    assert torch.equal(around.obs(delta), batch.obs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pdg", 0.1), r"attack: unknown method 'pdg'; did you mean 'pgd'\? \(known: fgsm, pgd\)"),
        ((3, 0.1), "attack: unknown method 3"),
        (("pgd", -0.1), r"epsilon: must be a number from 0 to 1e\+09 \(got -0.1\)"),
        (("pgd", float("nan")), "epsilon: must be a number"),
        (("pgd", "big"), "epsilon: must be a number"),
        (("pgd", 1e300), "epsilon: must be a number"),
        (("pgd", 0.1, 0), r"attack steps: must be a whole number from 1 to 1000 \(got 0\)"),
        (("pgd", 0.1, 10**12), "attack steps: must be a whole number"),
        (("pgd", 0.1, 2.5), "attack steps: must be a whole number"),
        (("pgd", 0.1, 2, 0.0), "attack step size: must be above 0"),
    ],
)
def test_wrong_attacks_are_refused(arguments: tuple[Any, ...], message: str):
    with pytest.raises(ConfigError, match=message):
        Attack(*arguments)
