"""Fault 18: NaN in the loss or its gradient is skipped, then rolled back, then the run ends with a dump."""

import json
import math
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from surefoot.api import PPO
from surefoot.data.records import IterationReport
from surefoot.errors import NonFiniteError
from surefoot.training import rollback
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, column, newest, saved_steps, train
from tests.training.states import assert_same

ITERATION = {"num_envs": 2, "num_steps": 16, "batch_size": 8, "epochs": 2, "hidden": 4}
"""32 steps, and 8 gradient steps."""
UPDATE = 8


class Poison(nn.Module):
    """An encoder whose output turns to NaN in some gradient steps, counted from 0, and never while it acts."""

    steps = 0

    def __init__(self, bad: Iterable[int]) -> None:
        super().__init__()
        self.out_features, self._bad = 4, set(bad)
        self.layer = nn.Linear(4, 4)

    def forward(self, obs: Tensor) -> Tensor:
        features: Tensor = self.layer(obs)
        if not torch.is_grad_enabled():
            return features
        self.steps += 1
        return features * math.nan if self.steps - 1 in self._bad else features


class Watch:
    """Notes the weights that the hooks after the rollback get to see."""

    def __init__(self, agent: PPO) -> None:
        self._agent = agent
        self.weights: list[dict[str, Tensor]] = []
        self.skipped: list[int] = []

    def after_iteration(self, report: IterationReport) -> None:
        state = self._agent.policy.state_dict()
        self.weights.append({name: value.clone() for name, value in state.items()})
        self.skipped.append(report.learned.skipped_steps)


def poisoned(bad: Iterable[int], **settings: object) -> PPO:
    """An agent whose actor's encoder fails in these gradient steps."""
    return PPO("CartPole-v1", encoder=Poison(bad), **ITERATION, console="off", eval_episodes=0, **settings)


def log_of(run: Path) -> str:
    return (run / "log.txt").read_text()


def test_a_few_bad_steps_are_skipped_and_counted(tmp_path):
    agent = poisoned([9, 10, 13])
    watch = Watch(agent)
    agent.learn(96, run_dir=tmp_path, hooks=[watch])
    assert watch.skipped == [0, 3, 0]
    assert column(tmp_path, "train/skipped_steps") == [0, 3, 0]
    assert column(tmp_path, "train/rollbacks") == []
    assert column(tmp_path, "warn/step_skipped") == [1.0, 1.0], "at once, and while it is no 10 iterations ago"
    assert "last good weights" not in log_of(tmp_path)


def test_many_in_a_row_roll_back_and_the_run_goes_on(tmp_path):
    """Half of the second update, all of the third: 12 in a row, counted across updates."""
    agent = poisoned(range(12, 24), max_skipped_steps=10)
    watch = Watch(agent)
    agent.learn(160, run_dir=tmp_path, hooks=[watch])
    assert watch.skipped == [0, 4, 8, 0, 0]
    first, second, third, fourth, _ = watch.weights
    assert not torch.equal(first["head.logits.weight"], second["head.logits.weight"]), "its good half counted"
    assert_same(third, first)
    assert not torch.equal(third["head.logits.weight"], fourth["head.logits.weight"]), "it learns again"
    assert column(tmp_path, "train/rollbacks") == [1.0]
    assert log_of(tmp_path).count("WARNING 12 consecutive gradient steps were not finite at step 96; rolled back") == 1
    assert newest(tmp_path)["progress"]["step"] == 160


def test_a_checkpoint_waits_for_an_update_without_bad_steps(tmp_path):
    agent = poisoned([9, 16], checkpoint_every=64)
    agent.learn(160, run_dir=tmp_path)
    assert saved_steps(tmp_path) == [160, 128]


def test_bad_steps_apart_from_each_other_are_no_row(tmp_path):
    agent = poisoned([step for step in range(80) if step % 4], max_skipped_steps=4)
    agent.learn(320, run_dir=tmp_path)
    assert column(tmp_path, "train/skipped_steps") == [6] * 10
    assert column(tmp_path, "train/rollbacks") == []


def test_it_ends_with_a_dump_if_going_back_does_not_help(tmp_path):
    agent = poisoned(range(16, 10_000), checkpoint_every=32)
    with pytest.raises(NonFiniteError, match=r"lower optimizer\.lr") as caught:
        agent.learn(32 * 100, run_dir=tmp_path)
    (dump,) = tmp_path.glob("nonfinite_step_*.json")
    assert str(dump) in str(caught.value)
    assert "\n" not in str(caught.value)
    # Two good updates, then 10 of 8 bad steps each in a row: every second update, four times.
    content = json.loads(dump.read_text(), parse_constant=pytest.fail)
    assert content["step"] == 32 * (2 + 4 * 2)
    assert content["trouble"] == "16 consecutive gradient steps were not finite"
    assert [record["train/skipped_steps"] for record in content["iterations"]] == [0, 0, *[8] * 8]
    assert content["iterations"][-1]["train/policy_gradient_loss"] == "nan"
    assert content["weights"]["critic.head.weight"]["not_finite"] == 0
    assert content["rollout"]["obs"]["shape"] == [17, 2, 4]
    assert column(tmp_path, "train/rollbacks") == [1.0, 2.0, 3.0]


def test_nothing_broken_is_saved_over_what_is_good(tmp_path):
    """A run that was fine is resumed with a learning rate that breaks its weights in one step."""
    every = ("--train.checkpoint_every", 32)
    train("Pendulum-v1", tmp_path, *TINY, *every, "--steps", 64)
    before = {path.name: path.read_bytes() for path in RunDirectory(tmp_path).saved()}
    breaking = ("--optimizer.lr", "1e38", "--train.max_rollbacks", 0, "--log.console", "off")
    message = surefoot("resume", tmp_path, "--steps", 1000, *breaking).refused()
    assert "not finite after the update at step 128; lower optimizer.lr (1e+38)" in message
    assert column(tmp_path, "train/skipped_steps") == [0, 0, 3]
    # At step 96 the weights were still finite, but so large that steps were skipped: that is no state to keep.
    after = {path.name: path.read_bytes() for path in RunDirectory(tmp_path).saved()}
    assert len(before) == 2
    assert after | before == after
    assert saved_steps(tmp_path) in ([64, 32], [128, 64, 32])
    assert_same(newest(tmp_path)["policy"], read_checkpoint(tmp_path / "checkpoints" / max(before))["policy"])


def test_what_is_left_after_the_error_is_good():
    agent = PPO("CartPole-v1", **ITERATION, console="off", eval_episodes=0, lr=1e38, lr_schedule="constant")
    before = {name: value.clone() for name, value in agent.policy.state_dict().items()}
    with pytest.raises(NonFiniteError, match="again, after 3 rollbacks to the last good weights; lower"):
        agent.learn(3200)
    assert_same(dict(agent.policy.state_dict()), before)


@pytest.mark.parametrize("lr", ["1e38", "1e30"])
def test_an_absurd_learning_rate_ends_with_a_typed_error(tmp_path, lr):
    arguments = ("--optimizer.lr", lr, "--steps", 10_000, "--train.checkpoint_every", 32, "--log.console", "off")
    message = surefoot("train", "Pendulum-v1", "--run-dir", tmp_path, *TINY, *arguments).refused()
    assert "not finite" in message
    assert "nonfinite_step_" in message
    for path in RunDirectory(tmp_path).saved():
        weights = read_checkpoint(path)["policy"].values()
        assert all(bool(weight.isfinite().all()) for weight in weights)


def test_return_statistics_come_back_too(tmp_path):
    """NaN in a critic poisons the statistics of returns, which a skipped step does not protect."""
    agent = PPO("CartPole-v1", **ITERATION, console="off", eval_episodes=0, returns=True)

    class Break:
        def after_iteration(self, report: IterationReport) -> None:
            if report.progress.iteration == 2:
                agent.policy.critic.returns.mean.fill_(math.nan)

    watch = Watch(agent)
    agent.learn(160, run_dir=tmp_path, hooks=[watch, Break()])
    assert_same(watch.weights[2], watch.weights[1])
    assert all(bool(value.isfinite().all()) for value in watch.weights[-1].values())


def test_rollbacks_are_forgiven_after_a_good_while(tmp_path, monkeypatch):
    """One bad update now and then would end the run at the second, if they were not."""
    monkeypatch.setattr(rollback, "FORGIVEN_AFTER", 5)
    bad = [start + step for start in range(7 * UPDATE, 5 * 7 * UPDATE, 7 * UPDATE) for step in range(UPDATE)]
    agent = poisoned(bad, max_skipped_steps=8, max_rollbacks=1)
    agent.learn(32 * 7 * 5, run_dir=tmp_path)
    assert column(tmp_path, "train/rollbacks") == [1.0] * 4
    agent = poisoned(bad, max_skipped_steps=8, max_rollbacks=1)
    monkeypatch.setattr(rollback, "FORGIVEN_AFTER", 7)
    with pytest.raises(NonFiniteError, match="again, after 1 rollback to"):
        agent.learn(32 * 7 * 5)
