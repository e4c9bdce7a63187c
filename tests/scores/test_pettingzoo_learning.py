"""Teams: learned together, and not disturbed by those who are not there."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from surefoot.compose import Specs, build_policy, build_trainer
from surefoot.data.records import Learned, Rollout
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol import VecEnv
from surefoot.evaluation.evaluate import evaluate
from surefoot.learning.scorer import Scorer
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.settings.config import Config, NormalizeConfig, PolicyConfig
from surefoot.settings.layers import build_config
from surefoot.training.trainer import Trainer
from tests.envs.teams import Script, teams
from tests.scores.rota import HORIZON, SHIFTS, Rota


def configured(**sections: Any) -> Config:
    return build_config({"train": {"threads": 1}}, sections)


def trainer_of(config: Config, env: VecEnv) -> Trainer:
    return build_trainer(config, env, build_policy(config, Specs(env.obs_spec, env.action_spec)))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_cooperative_task(seed: int) -> None:
    """At random a third of the jobs is done right, without a look at the others two thirds, together nearly all."""
    config = configured(
        rollout={"num_envs": 8, "num_steps": 96},
        ppo={"batch_size": 256, "epochs": 8, "gamma": 0.5, "gae_lambda": 0.9},
        optimizer={"lr": 3e-3, "lr_schedule": "linear"},
        train={"steps": 30_000, "seed": seed},
    )
    env = PettingZooEnvs([Rota] * 8, seed)
    trainer = trainer_of(config, env)
    untrained = share_done(trainer)
    trainer.train()
    assert untrained < 0.5
    assert share_done(trainer) >= 0.85


def share_done(trainer: Trainer) -> float:
    result = evaluate(trainer.policy, PettingZooEnvs([Rota] * 4, 7), 48, seed=7)
    assert set(result.lengths) == {len(shift) for shift in SHIFTS.values()} == {HORIZON, HORIZON // 2, 2 * HORIZON // 3}
    return sum(result.rewards) / sum(result.lengths)


# What follows is by construction: numbers that must be equal, not scores.

STEPS = 32
EVERYTHING = {
    "rollout": {"num_envs": 1, "num_steps": STEPS},
    "ppo": {"batch_size": 16, "epochs": 3, "clip_value": 0.2, "entropy_coef": 0.01},
    "normalize": {"obs": True, "reward": True, "returns": True},
}
PAIR: Script = {"ann": "aaaaaaL", "bob": "aaaaT"}


def learned(trainer: Trainer, rollout: Rollout) -> tuple[Learned, dict[str, Tensor]]:
    """What an update makes of a rollout: its statistics, and every weight and running moment."""
    targets = trainer.scorer.score(rollout, trainer.policy.critic)
    result = trainer.learner.learn(rollout, targets, trainer.schedules.at(trainer.progress))
    state = {name: value.clone() for name, value in trainer.policy.state_dict().items()}
    scaler = trainer.scorer.state()["reward_scaler"]
    assert scaler is not None
    return result, state | {f"reward {name}": value for name, value in scaler.items() if name != "carried"}


def copied(rollout: Rollout) -> Rollout:
    tensors = {name: value.clone() for name, value in vars(rollout).items() if isinstance(value, Tensor)}
    return replace(rollout, **tensors)


@pytest.mark.parametrize("garbage", [1e30, torch.inf, torch.nan])
def test_what_is_recorded_of_dead_agents_changes_nothing(garbage: float) -> None:
    """Bit for bit: two updates from the same rollouts, once with garbage wherever a row is not valid."""
    script = [PAIR | {"cid": "aaT"}, {"ann": "aaaL", "bob": "aT", "cid": "..aaL"}]
    clean, dirty = (trainer_of(configured(**EVERYTHING), teams(2, script)) for _ in range(2))
    for _ in range(2):
        rollout = copied(clean.collector.collect(clean.policy))
        spoiled = copied(rollout)
        dead = ~rollout.valid
        assert 0.2 < dead.float().mean() < 0.8
        for field in (spoiled.obs, spoiled.reward, spoiled.value, spoiled.log_prob, spoiled.final_value):
            assert isinstance(field, Tensor)
            field[dead] = garbage
        spoiled.action[dead] = 3
        spoiled.last_value[dead[-1]] = garbage
        (result, state), (other_result, other_state) = learned(clean, rollout), learned(dirty, spoiled)
        assert result == other_result
        for name, value in state.items():
            assert torch.equal(value, other_state[name]), name


def columns(rollout: Rollout, rows: int) -> dict[str, Tensor]:
    """All that is recorded of the first rows, and their advantages."""
    names = ("obs", "action", "log_prob", "value", "reward", "terminated", "truncated", "final_value", "episode_start")
    found = {name: getattr(rollout, name)[:, :rows] for name in (*names, "valid")}
    scorer = Scorer(configured(ppo={"advantage_norm": "none"}).ppo, None)
    return found | {
        "advantage": scorer.score(rollout, ScalarCritic(1, PolicyConfig(), NormalizeConfig())).advantage[:, :rows]
    }


@pytest.mark.parametrize("line", ["aaT", "aL", "aag", "..aaL", "......."])
def test_the_others_experience_is_the_same_without_the_one_who_dies(line: str) -> None:
    with_cid, without = (
        trainer_of(configured(**EVERYTHING), teams(1, [script])) for script in (PAIR | {"cid": line}, PAIR)
    )
    rollout, other = (trainer.collector.collect(trainer.policy) for trainer in (with_cid, without))
    expected = columns(other, 2)
    for name, column in columns(rollout, 2).items():
        torch.testing.assert_close(column, expected[name], rtol=1e-5, atol=1e-5, msg=name)


def test_one_who_never_takes_part_is_as_if_not_there() -> None:
    """Two updates: the same weights, statistics and episodes."""
    with_cid, without = (
        trainer_of(configured(**EVERYTHING), teams(1, [script])) for script in (PAIR | {"cid": "......."}, PAIR)
    )
    for _ in range(2):
        rollout, other = (trainer.collector.collect(trainer.policy) for trainer in (with_cid, without))
        assert rollout.num_steps == other.num_steps < 2 * STEPS
        assert rollout.stats.finished == other.stats.finished
        (result, state), (other_result, other_state) = learned(with_cid, rollout), learned(without, other)
        for name in ("policy_loss", "value_loss", "entropy", "approx_kl"):
            assert getattr(result, name) == pytest.approx(getattr(other_result, name), rel=1e-4, abs=1e-6), name
        for name, value in state.items():
            torch.testing.assert_close(value, other_state[name], rtol=1e-4, atol=1e-5, msg=name)


def test_starts_and_episodes_of_those_who_come_and_go() -> None:
    env = teams(1, [PAIR | {"cid": "..aaL"}])
    trainer = trainer_of(configured(rollout={"num_envs": 1, "num_steps": 8}, ppo={"batch_size": 8}), env)
    rollout = trainer.collector.collect(trainer.policy)
    # cid joins after the second step; the episode of six steps begins anew in the seventh.
    assert rollout.valid[:, 2].tolist() == [False, False, True, True, False, False, False, False]
    assert rollout.episode_start[:, 2].tolist() == [True, True, True, False, True, True, True, True]
    assert rollout.episode_start[:, 1].tolist() == [True, False, False, False, True, True, True, False]
    assert [episode.length for episode in rollout.stats.finished] == [4, 2, 6]
    # Across the boundary: the next rollout goes on where this one stopped.
    following = trainer.collector.collect(trainer.policy)
    assert following.valid[:, 2].tolist() == [True, True, False, False, False, False, True, True]
    assert following.episode_start[:, 2].tolist() == [True, False, True, True, True, True, True, False]
