"""Every alert tripped by a real run, and named by `doctor` with a remedy that fits; a healthy run has none."""

import json
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from gymnasium.wrappers import TransformReward
from torch import Tensor, nn

from surefoot.api import PPO
from surefoot.cli.main import main
from surefoot.errors import NonFiniteError
from surefoot.inspection.run_record import read_run
from surefoot.policies.critics import ValueTargets
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.critics.twin import TwinCritic
from surefoot.telemetry import gauges
from surefoot.telemetry.alerts import ALERTS
from tests.cli.ailing_envs import AlternatingEnv, BrokenEnv, EndlessEnv, NoiseEnv, StillEnv, TiringEnv
from tests.cli.runs import column
from tests.envs.unruly import UnrulyEnv

QUIET = {"console": "off", "eval_episodes": 0, "tensorboard": False}
SMALL = {"num_envs": 4, "num_steps": 32, "batch_size": 32, "epochs": 4, "hidden": 8, **QUIET}
"""Iterations of 128 steps."""
ITERATION = 128


class Bad(nn.Module):
    """An encoder with one bad gradient step."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.steps = nn.Linear(3, 4), 0

    def forward(self, obs: Tensor) -> Tensor:
        self.steps += torch.is_grad_enabled()
        return self.layer(obs) * (math.nan if self.steps == 20 else 1.0)


def wild(run: Path) -> None:
    PPO(StillEnv, **{**SMALL, "epochs": 10}, lr=0.1, log_std=-1.0, std_floor=0.02).learn(16 * ITERATION, run_dir=run)


def rash(run: Path) -> None:
    PPO("CartPole-v1", **SMALL, lr=1.0, lr_schedule="constant").learn(14 * ITERATION, run_dir=run)


def noise_to_learn(run: Path) -> None:
    PPO(NoiseEnv, **SMALL, gamma=0.0, lr=0.02).learn(36 * ITERATION, run_dir=run)


def narrow(run: Path) -> None:
    PPO(StillEnv, **{**SMALL, "epochs": 10}, lr=0.02, log_std=-3.0, std_floor=0.04).learn(16 * ITERATION, run_dir=run)


def one_bad_step(run: Path) -> None:
    PPO(NoiseEnv, **SMALL, encoder=Bad()).learn(4 * ITERATION, run_dir=run)


def crashing_worker(run: Path) -> None:
    env = partial(UnrulyEnv, index=0, lengths=(9,), where="step", how="exit", at=40, once=run.parent / "done")
    agent = PPO(env, **{**SMALL, "num_envs": 2, "num_steps": 16}, engine="processes", workers=2)
    agent.learn(4 * 32, run_dir=run)
    agent.close()


def tiring(run: Path) -> None:
    TiringEnv.steps, TiringEnv.fresh_for = 0, 800
    settings = {"num_envs": 1, "num_steps": 8, "batch_size": 8, "epochs": 1, "hidden": 4, **QUIET}
    PPO(TiringEnv, **settings).learn(8 * 150, run_dir=run)


def noisy_investor(run: Path) -> None:
    """The best exposure is 0.3, but with noise of 0.37 none at all is better."""
    market = {"process": "student_t", "degrees": 7, "drift": 0.3, "volatility": 0.6, "exposure_cost": 0.4}
    market |= {"turnover_cost": 0, "horizon": 1, "window": 0, "low": 0, "high": 2, "bankrupt_below": -1e6}
    sizes = {"num_envs": 256, "num_steps": 8, "batch_size": 1024, "epochs": 4, "hidden": 8, "memory": "none", **QUIET}
    agent = PPO(
        "Market-v0",
        kwargs=market,
        truncation_as_termination=True,
        **sizes,
        distribution={"kind": "gaussian", "log_std": -1.0},
        estimator={"kind": "risk", "alpha": 0.07, "beta": 0.15},
        gamma=1.0,
        normalize={"obs": False, "returns": True},
    )
    agent.learn(40 * 256 * 8, run_dir=run)


class WeighedTwin(TwinCritic):
    """The losses of the critics have weights."""

    weights: tuple[float, float]

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        losses = [self._critic(i).loss(prediction[:, i], self._own(targets, i)) for i in range(2)]
        return self.weights[0] * losses[0] + self.weights[1] * losses[1]


class FirstSilent(WeighedTwin):
    """The first critic has no gradient."""

    weights = (0, 1)


class SecondSilent(WeighedTwin):
    """The second critic has no gradient."""

    weights = (1, 0)


class LoudTwin(WeighedTwin):
    """The loss of the first critic is scaled by 1000."""

    weights = (1000, 1)


class SilentCritic(ScalarCritic):
    """Has no gradient."""

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        return 0 * super().loss(prediction, targets)


def with_critic(critic: type, run: Path, iterations: int = 14, **settings: Any) -> None:
    agent = PPO("CartPole-v1", **SMALL, critic=f"{__name__}:{critic.__name__}", **settings)
    agent.learn(iterations * ITERATION, run_dir=run)


def first_silent(run: Path) -> None:
    with_critic(FirstSilent, run)


def second_silent(run: Path) -> None:
    with_critic(SecondSilent, run, value_coef=0.05)


def loud(run: Path) -> None:
    with_critic(LoudTwin, run)


def silent(run: Path) -> None:
    with_critic(SilentCritic, run, share_trunk=True)


def starved(run: Path) -> None:
    env = partial(TransformReward, gym.make("CartPole-v1"), lambda reward: 10_000 * reward)
    PPO(env, **{**SMALL, "num_envs": 1, "num_steps": 128}).learn(14 * ITERATION, run_dir=run)


ILL = {
    "actor_starved": (starved, "train/actor_grad_norm", "set optimizer.clip_grad to apart", "medium"),
    "critic1_vanishing_gradients": (
        first_silent,
        "train/critic1_grad_norm",
        "none of its parameters is frozen",
        "medium",
    ),
    "critic2_vanishing_gradients": (
        second_silent,
        "train/critic2_grad_norm",
        "set ppo.value_coef from 0.05 to 0.5, as in the preset",
        "medium",
    ),
    "critic_vanishing_gradients": (silent, "train/critic_grad_norm", "lower optimizer.lr from 0.003 to", "medium"),
    "twin_critics_gradient_imbalance": (loud, "train/critics_grad_ratio", "set normalize.returns to true", "medium"),
    "kl_high": (wild, "train/approx_kl", "lower optimizer.lr from 0.1 to about 0.03", "high"),
    "clip_fraction_high": (wild, "train/clip_fraction", "set ppo.target_kl to 0.02", "medium"),
    "entropy_collapse": (rash, "train/entropy_loss", "raise ppo.entropy_coef from 0 to 0.01", "medium"),
    "std_at_floor": (narrow, "train/std", "raise policy.distribution.std_floor from 0.04 to 0.2", "medium"),
    "noise_decides": (noisy_investor, "risk/noise_cost", "set hooks.fade_noise.end to about 0.04", "medium"),
    "value_not_learning": (noise_to_learn, "train/explained_variance", "set normalize.returns to true (or", "medium"),
    "step_skipped": (one_bad_step, "train/skipped_steps", "lower optimizer.lr from 0.0003 to about 3e-05", "high"),
    "worker_restarted": (crashing_worker, "rollout/worker_restarts", "rollout.engine.step_timeout_s from 60", "medium"),
    "throughput_drop": (tiring, "time/fps", "the environment is the cause", "medium"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each run once, when it is first asked for."""
    made: dict[Any, Path] = {}

    def run_of(train: Any) -> Path:
        if train not in made:
            made[train] = tmp_path_factory.mktemp(train.__name__) / "run"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(gauges, "THROUGHPUT_S", 0.3)  # a test has less patience
                train(made[train])
        return made[train]

    return run_of


def examined(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["doctor", str(run), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_every_alert_is_tripped() -> None:
    assert set(ILL) == {alert.name for alert in ALERTS}


@pytest.mark.parametrize("name", ILL)
def test_an_alert_is_tripped_by_a_run_and_named_with_its_remedy(name, runs, capsys):
    train, metric, remedy, severity = ILL[name]
    run = runs(train)
    assert 1.0 in column(run, f"warn/{name}"), "in the metrics"
    assert len(re.findall(rf"WARNING warn/{name} at step \d+: ", (run / "log.txt").read_text())) >= 1, "in the log"
    code, found = examined(run, capsys)
    assert code == 1
    (finding,) = [finding for finding in found["findings"] if finding["name"] == name]
    assert finding["evidence"][0]["metric"] == metric
    assert finding["evidence"][0]["value"] in [value for _, value in read_run(run).series(metric)]
    assert any(remedy in text for text in finding["remedies"]), finding["remedies"]
    assert severity in (None, finding["severity"])
    assert finding["when"].startswith("raised ")


def test_doctor_sees_it_without_the_alerts_of_the_run(runs, tmp_path, capsys):
    """From the metrics alone, and from every third record."""
    source = runs(wild)
    lines = [json.loads(line) for line in (source / "metrics.jsonl").read_text().splitlines()]
    bare = [{key: value for key, value in line.items() if not key.startswith("warn/")} for line in lines]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in bare[2::3]))
    config = (source / "config.yaml").read_text()
    assert "log_every: 1\n" in config
    (tmp_path / "config.yaml").write_text(config.replace("log_every: 1\n", "log_every: 3\n"))
    code, found = examined(tmp_path, capsys)
    assert code == 1
    assert {"kl_high", "clip_fraction_high"} <= {finding["name"] for finding in found["findings"]}


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer.frozen": "critic"},
        {"optimizer.frozen": "critic.*,critic_body.*"},
        {"optimizer.frozen": "critic", "critic": "twin"},
        {"optimizer.frozen": "critic?", "critic": "twin"},
        {"optimizer.frozen": "critic1", "critic": "twin"},
    ],
)
def test_what_is_frozen_on_purpose_raises_no_alert(settings, tmp_path, capsys):
    PPO("CartPole-v1", **SMALL, **settings).learn(14 * ITERATION, run_dir=tmp_path)
    assert column(tmp_path, f"train/critic{'1' * ('critic' in settings)}_grad_norm") == []
    assert "vanishing" not in str(examined(tmp_path, capsys)[1]["findings"])


def test_a_healthy_run_has_no_alert(tmp_path, capsys):
    PPO("CartPole-v1", **QUIET).learn(50 * 256, run_dir=tmp_path)
    assert [line for line in (tmp_path / "metrics.jsonl").read_text().splitlines() if "warn/" in line] == []
    assert "WARNING" not in (tmp_path / "log.txt").read_text()
    assert main(["doctor", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "healthy: no problems found" in shown
    assert "kl high" in shown, "what was checked"
    code, found = examined(tmp_path, capsys)
    assert (code, found["is_healthy"], found["findings"]) == (0, True, [])
    assert set(ILL) < set(found["checked"])


@pytest.mark.parametrize(("env", "steps"), [("CartPole-v1", 30 * 1024), ("cheetah-minute", 15 * 4096)])
def test_a_healthy_run_with_twin_quantile_critics_has_no_alert(env, steps, tmp_path):
    critic = {"kind": "twin", "of": {"kind": "quantile", "num_quantiles": 11}}
    PPO(env, **QUIET, critic=critic).learn(steps, run_dir=tmp_path)
    assert [line for line in (tmp_path / "metrics.jsonl").read_text().splitlines() if "warn/" in line] == []
    assert all(0.1 < ratio < 10 for ratio in column(tmp_path, "train/critics_grad_ratio"))


def test_the_text_reads_well(runs, capsys):
    run = runs(wild)
    assert main(["doctor", str(run)]) == 1
    shown = capsys.readouterr().out
    assert re.search(r"^\d findings: KL high", shown, re.MULTILINE), "the worst first"
    assert "1. KL high  (high)" in shown
    for part in ("meaning", "evidence", "try", "notes", "checked", "optimizer.lr from 0.1 to about 0.03"):
        assert part in shown
    assert all(len(line) <= 110 for line in shown.splitlines()[1:])
    assert "\x1b" not in shown, "no colors in a pipe"


def test_json_has_the_same_keys_whatever_is_found(runs, tmp_path, capsys):
    keys = {"run", "env", "step", "total_steps", "process", "findings", "notes", "checked", "is_healthy", "verdict"}
    _, found = examined(runs(wild), capsys)
    assert set(found) == keys
    assert set(found["findings"][0]) == {"name", "severity", "title", "meaning", "evidence", "when", "remedies"}
    assert set(found["findings"][0]["evidence"][0]) == {"metric", "value", "step"}


def test_an_env_that_never_ends_and_leaves_its_bounds(tmp_path, capsys):
    settings = {**SMALL, "num_envs": 1, "num_steps": 1024, "batch_size": 1024, "epochs": 1}
    PPO(EndlessEnv, **settings).learn(5 * 1024, run_dir=tmp_path)
    code, found = examined(tmp_path, capsys)
    by_name = {finding["name"]: finding for finding in found["findings"]}
    assert code == 1
    assert "set env.max_episode_steps, for example to 1000" in by_name["no_episode_ends"]["remedies"]
    bounds = by_name["obs_out_of_bounds"]
    assert bounds["evidence"][0]["value"] == max(column(tmp_path, "rollout/obs_out_of_bounds"))
    assert bounds["severity"] == "low"


def test_a_deterministic_policy_that_fails_is_found(tmp_path, capsys):
    agent = PPO(AlternatingEnv, **SMALL | {"eval_episodes": 10}, entropy_coef=0.5)
    agent.learn(22 * ITERATION, run_dir=tmp_path)
    code, found = examined(tmp_path, capsys)
    assert code == 1
    (finding,) = found["findings"]
    assert (finding["name"], finding["severity"]) == ("eval_below_training", "high")
    training, evaluation = (evidence["value"] for evidence in finding["evidence"])
    assert training > 7 > 1 >= evaluation
    assert f"'surefoot evaluate {tmp_path} --stochastic'" in finding["remedies"][0]
    assert any("lower ppo.entropy_coef from 0.5 to 0.05" in remedy for remedy in finding["remedies"])
    assert any("all 10 episodes are identical, step by step" in note for note in found["notes"])
    assert agent.evaluate(deterministic=False).mean_reward > 7, "the remedy shows the cause"


def test_an_agent_with_a_cvar_objective_may_become_deterministic(tmp_path, capsys):
    """Its noise is a cost: the preset of the corridor ends with 2% of its entropy."""
    risk = {"kind": "risk", "alpha": 0.1, "beta": 0.9}
    agent = PPO("RiskyCorridor-v0", estimator=risk, gamma=1.0, **QUIET, **{"normalize.returns": True})
    agent.learn(30_000, run_dir=tmp_path)
    entropy = column(tmp_path, "train/entropy_loss")
    assert entropy[-1] / entropy[0] < 0.05
    assert examined(tmp_path, capsys)[1]["findings"] == []


class LateTwin(TwinCritic):
    """The first critic learns only after 14 iterations."""

    losses = 0

    def loss(self, prediction: Tensor, targets: ValueTargets) -> Tensor:
        LateTwin.losses += 1
        weight = float(LateTwin.losses > 14 * 16)
        losses = [self._critic(i).loss(prediction[:, i], self._own(targets, i)) for i in range(2)]
        return weight * losses[0] + losses[1]


def test_an_alert_rises_once_and_clears(tmp_path, capsys):
    LateTwin.losses = 0
    with_critic(LateTwin, tmp_path, iterations=26)
    flags = column(tmp_path, "warn/critic1_vanishing_gradients")
    assert flags == [1.0] * (len(flags) - 1) + [0.0], "raised without a gap, then cleared"
    lines = [line for line in (tmp_path / "log.txt").read_text().splitlines() if "critic1_vanishing" in line]
    assert ["cleared" in line for line in lines] == [False, True], lines
    _, found = examined(tmp_path, capsys)
    (finding,) = [one for one in found["findings"] if one["name"] == "critic1_vanishing_gradients"]
    assert finding["severity"] == "low"
    assert "cleared at step" in finding["when"]


def test_a_reward_that_is_nan_ends_the_run_and_is_named(tmp_path, capsys):
    BrokenEnv.steps, BrokenEnv.bad_step = 0, 3 * ITERATION - 5
    agent = PPO(BrokenEnv, **SMALL)
    with pytest.raises(NonFiniteError, match=r"env 2 .* returned nan in its reward"):
        agent.learn(6 * ITERATION, run_dir=tmp_path)
    code, found = examined(tmp_path, capsys)
    assert code == 1
    (finding,) = found["findings"]
    assert (finding["name"], finding["severity"]) == ("ended_by_error", "high")
    assert "returned nan in its reward" in finding["meaning"]
    assert finding["remedies"][0].startswith("fix the env")
    assert finding["when"] == f"at step {2 * ITERATION} of {6 * ITERATION}"
    agent.learn(2 * ITERATION, run_dir=tmp_path)
    assert examined(tmp_path, capsys)[1]["findings"] == []


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert main(["doctor", str(tmp_path / "nothing")]) == 2
    assert "does not exist; pass the run directory" in capsys.readouterr().err
