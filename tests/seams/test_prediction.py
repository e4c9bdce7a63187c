"""A critic's prediction is stored in rollouts in its own shape and given back to its loss."""

from pathlib import Path

import pytest

from tests.cli.runs import TINY, column, newest, train
from tests.seams.runs import bring, train_from_flags

SPY = """
from ensemble_critic import EnsembleCritic
from surefoot import Hook

seen = []


class SpyCritic(EnsembleCritic):
    def loss(self, prediction, targets):
        seen.append(targets)
        return super().loss(prediction, targets)


class Spy(Hook):
    def after_rollout(self, rollout):
        seen.clear()
        stored = rollout.extras["prediction"]
        self.stored, self.shape = stored.clone(), stored.shape
        value = stored.mean(-1) - 0.25 * stored.std(-1, correction=0)
        self.error = float((value - rollout.value).abs().max())

    def after_iteration(self, report):
        rows = {tuple(row) for row in self.stored.flatten(0, 1).tolist()}
        given = [tuple(row) for targets in seen for row in targets.old_prediction.tolist()]
        report.metrics["spy/unknown"] = float(sum(row not in rows for row in given))
        report.metrics["spy/given"] = float(len(given))
        report.metrics["spy/error"] = self.error
        report.metrics.update({f"spy/axis_{axis}": float(size) for axis, size in enumerate(self.shape)})
"""


@pytest.mark.parametrize("engine", ["local", "processes", "native"])
def test_the_loss_gets_the_predictions_of_the_rollout(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["ensemble_critic"])
    Path("spy.py").write_text(SPY)
    spied = ("--hooks.spy", "spy:Spy", "--policy.critic.kind", "spy:SpyCritic", "--rollout.engine", engine)
    train_from_flags("ensemble_critic", Path("run"), *spied)
    run = Path("run")
    assert [column(run, f"spy/axis_{axis}")[-1] for axis in range(3)] == [8, 4, 3]
    assert column(run, "spy/given") == [64] * 5, "two epochs of 32 samples"
    assert column(run, "spy/unknown") == [0] * 5
    assert max(column(run, "spy/error")) < 1e-5


def test_twins_of_a_critic_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both learn, from different weights."""
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["ensemble_critic"])
    Path("spy.py").write_text(SPY)
    Path("twins.yaml").write_text("policy: {critic: {kind: twin, of: {kind: 'spy:SpyCritic', num_members: 3}}}")
    settings = ("--config", "twins.yaml", "--ppo.clip_value", "0.2", "--steps", "160")
    train("CartPole-v1", Path("run"), *TINY, *settings)
    end = newest(Path("run"))
    weights = [end["policy"][f"critic.critics.{index}.heads.weight"] for index in (0, 1)]
    assert all(norm > 0 for name in ("critic1", "critic2") for norm in column(Path("run"), f"train/{name}_grad_norm"))
    assert not weights[0].equal(weights[1])
