"""A member that takes over another's state, on real trainers: what is taken, what is its own, and what is changed."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
import torch

from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.population.member import read_back, take_over
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.storage.state import copied, states
from surefoot.training.trainer import Trainer

BASE = {
    "env.id": "CartPoleNoVel-v1",
    "policy.memory": "gru",
    "policy.memory.hidden_size": 4,
    "policy.hidden": [8],
    "rollout.num_envs": 4,
    "rollout.num_steps": 16,
    "rollout.sequence_length": 8,
    "ppo.batch_size": 64,
    "ppo.epochs": 2,
    "ppo.terms": {"adversary": {"weight": 0.1, "epsilon": 0.05, "share": 0.5}, "penalty": {"kind": "kl_penalty"}},
    "normalize": {"obs": True, "reward": True, "returns": True},
    "schedules": {"lr": "linear", "penalty.weight": {"kind": "kl_penalty", "desired_kl": 1e-9}},
    "train.steps": 10_000,
}
CHANGED = {
    "optimizer.lr": 2e-3,
    "ppo.clip": 0.31,
    "ppo.entropy_coef": 0.07,
    "ppo.gamma": 0.9,
    "ppo.terms.adversary.epsilon": 0.11,
    "ppo.terms.adversary.share": 0.25,
    "ppo.terms.adversary.weight": 0.4,
    "rollout.num_envs": 8,
}


def trainer_of(changes: dict[str, Any], seed: int) -> tuple[Trainer, Config]:
    config = build_config(BASE, changes, {"train.seed": seed})
    env = build_env(config)
    specs = Specs(env.obs_spec, env.action_spec)
    return build_trainer(config, env, build_policy(config, specs)), config


def trained(iterations: int, seed: int, **changes: Any) -> dict[str, Any]:
    """The state of a trainer after some iterations."""
    trainer, _ = trainer_of(changes, seed)
    with closing(trainer.collector.rows.env):
        for _ in range(iterations):
            trainer.iterate()
        return copied(states(trainer.stateful()))


@pytest.fixture(scope="module")
def donor() -> dict[str, Any]:
    return trained(3, seed=1)


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return trained(5, seed=2, **{"rollout.num_envs": 8})


def check(trainer: Trainer, config: Config, donor: Any, own: Any, optimizer: str) -> None:
    """Everything that must hold after a takeover, before and after an update."""
    state = states(trainer.stateful())
    torch.testing.assert_close(state["policy"], donor["policy"], rtol=0, atol=0)  # with the normalizers
    scaler, donors = state["scorer"]["reward_scaler"], donor["scorer"]["reward_scaler"]
    assert (scaler["count"], scaler["mean"], scaler["var"]) == (donors["count"], donors["mean"], donors["var"])
    assert not scaler["carried"].any()
    assert state["objective"] == donor["objective"]
    assert state["schedules"]["penalty.weight"]["state"] == donor["schedules"]["penalty.weight"]["state"]
    if optimizer == "copy":
        torch.testing.assert_close(state["gradient"], donor["gradient"], rtol=0, atol=0)
    else:
        assert state["gradient"] == {"adam": {}, "transforms": {}}
    rows = trainer.collector.rows
    assert all(part.shape[0] == 8 and not part.any() for part in rows.memory)
    assert rows.buffer.episode_start[-1].all()
    assert not rows.episodes.state()["length"].any()
    assert rows.step == own["collector"]["step"]
    assert state["progress"] == own["progress"]
    knobs = trainer.schedules.at(trainer.progress)
    report = trainer.iterate()
    used = read_back(CHANGED, trainer, config, knobs, report)
    assert used == CHANGED | {"optimizer.lr": 2e-3 * (1 - own["progress"]["step"] / 10_000)}  # its linear schedule
    terms = trainer.learner.objective.terms
    assert terms["entropy"].weight(knobs) == 0.07
    assert report.learned.metrics["adversary/share"] < 0.45  # whole sequences: about 0.25, and not 0.5


@pytest.mark.parametrize("optimizer", ["reset", "copy"])
def test_state_of_the_donor_and_settings_of_the_member(donor, own, optimizer):
    trainer, config = trainer_of(CHANGED, seed=2)
    with closing(trainer.collector.rows.env):
        take_over(trainer, donor, own, optimizer)
        check(trainer, config, donor, own, optimizer)


@pytest.mark.parametrize("optimizer", ["reset", "copy"])
def test_what_hooks_of_the_member_froze_stays_frozen(donor, own, optimizer):
    name = "head.logits.weight"
    trainer, _ = trainer_of(CHANGED, seed=2)
    with closing(trainer.collector.rows.env):
        take_over(trainer, donor, own | {"frozen": {"frozen": [name], "thawed": []}}, optimizer)
        trainer.iterate()
        assert torch.equal(trainer.policy.get_parameter(name), donor["policy"][name])


def donors_values(trainer: Trainer, donor: Any, own: Any) -> None:
    trainer.schedules = trainer_of({}, 2)[0].schedules


def no_normalizer(trainer: Trainer, donor: Any, own: Any) -> None:
    fresh = trainer_of({}, 2)[0].policy
    trainer.policy.preprocess.load_state_dict(fresh.preprocess.state_dict())


def no_reward_statistics(trainer: Trainer, donor: Any, own: Any) -> None:
    trainer.scorer.load_state(own["scorer"])


def own_moments(trainer: Trainer, donor: Any, own: Any) -> None:
    trainer.learner.gradient.load_state(own["gradient"])


def donors_hidden_states(trainer: Trainer, donor: Any, own: Any) -> None:
    memory = tuple(part.repeat(2, *[1] * (part.ndim - 1)) for part in donor["collector"]["memory"])
    trainer.collector.rows._set_memory(memory)


def donors_counters(trainer: Trainer, donor: Any, own: Any) -> None:
    trainer.stateful()["progress"].load_state(donor["progress"])


@pytest.mark.parametrize("optimizer", ["reset", "copy"])
@pytest.mark.parametrize(
    "fault",
    [donors_values, no_normalizer, no_reward_statistics, own_moments, donors_hidden_states, donors_counters],
)
def test_planted_faults_are_found(donor, own, optimizer, fault: Callable[..., None]):
    trainer, config = trainer_of(CHANGED, seed=2)
    with closing(trainer.collector.rows.env):
        take_over(trainer, donor, own, optimizer)
        fault(trainer, donor, own)
        with pytest.raises(AssertionError):
            check(trainer, config, donor, own, optimizer)


PLAIN = {"ppo.terms": {"adversary": None, "penalty": None}, "schedules": {"lr": None, "penalty.weight": None}}


def step_of(donor: Any, lr: float, optimizer: str) -> torch.Tensor:
    """The change of the weights in one gradient step after a takeover."""
    trainer, _ = trainer_of({**PLAIN, "ppo.epochs": 1, "ppo.max_grad_norm": None, "optimizer.lr": lr}, seed=2)
    with closing(trainer.collector.rows.env):
        take_over(trainer, donor, donor, optimizer)
        before = torch.cat([one.detach().flatten().double() for one in trainer.policy.actor_body.parameters()])
        trainer.iterate()
        return torch.cat([one.detach().flatten().double() for one in trainer.policy.actor_body.parameters()]) - before


@pytest.mark.parametrize("optimizer", ["reset", "copy"])
def test_the_changed_learning_rate_is_the_length_of_the_step(donor, optimizer):
    small, large = (step_of(donor, lr, optimizer) for lr in (1e-3, 4e-3))
    assert small.abs().max() > 1e-4
    torch.testing.assert_close(large, 4 * small, rtol=2e-2, atol=2e-6)
    if optimizer == "reset":  # the first step of Adam: the learning rate in the direction of the sign
        assert small.abs().max() == pytest.approx(1e-3, rel=0.1)


def test_the_changed_clip_is_in_the_loss(donor):
    fractions = []
    for clip in (1e-6, 0.9):
        trainer, _ = trainer_of({**PLAIN, "ppo.epochs": 4, "ppo.clip": clip}, seed=2)
        with closing(trainer.collector.rows.env):
            take_over(trainer, donor, donor, "reset")
            fractions.append(trainer.iterate().learned.clip_fraction)
    assert fractions[0] > 0.5
    assert fractions[1] == 0


def test_a_member_that_failed_counts_on_from_the_donor(donor):
    trainer, _ = trainer_of(CHANGED, seed=2)
    with closing(trainer.collector.rows.env):
        take_over(trainer, donor, None, "reset")
        assert states(trainer.stateful())["progress"] == donor["progress"]
        assert trainer.collector.rows.step == donor["collector"]["step"]
