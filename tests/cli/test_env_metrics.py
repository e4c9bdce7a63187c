"""Metrics and parameters of envs in whole runs: metrics.jsonl, evaluation, the best policy, resume."""

import json

import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, column, newest, records, train
from tests.training.states import assert_same

pytestmark = pytest.mark.xdist_group("env metrics")
ENV, HOOK = "tests.cli.measured_envs:Measured-v0", ("--hooks.push", "tests.cli.pushing:Pushing")
NAMES = ["env/travel", "env/angle", "env/is_success"]
EVALUATED = ("--train.eval_episodes", 2, "--train.eval_every", 32, "--rollout.engine", "local")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that keeps the policy with the oldest envs, and what was printed."""
    run = tmp_path_factory.mktemp("metrics") / "run"
    return run, train(ENV, run, *TINY, *EVALUATED, "--steps", 96, "--train.best_metric", "age").out


def test_metrics_reach_the_records_and_the_last_line(run):
    run, out = run
    last = records(run)[-1]
    assert {name for name in last if name.startswith("env/")} == {*NAMES, "env/age"}
    assert {name for name in last if name.startswith("eval/")} == {
        *("eval/mean_reward", "eval/std_reward", "eval/mean_ep_length", "eval/cvar", "eval/worst_reward"),
        *(f"eval/quantile_{share}" for share in ("05", "25", "50", "75", "95")),
        *(("eval/sharpe",) if last["eval/std_reward"] else ()),
        "eval/win_rate",
        *("eval/travel", "eval/angle", "eval/is_success", "eval/age"),
    }
    assert f"is_success {last['eval/is_success']:.4g}, age {last['eval/age']:.4g}" in out


def test_evaluate_shows_them(run):
    run, _ = run
    result = json.loads(surefoot("evaluate", run, "--episodes", 3, "--json").succeeded().out)
    assert [len(found["values"]) for found in result["metrics"].values()] == [3, 3, 3, 3]
    out = surefoot("evaluate", run, "--episodes", 3).succeeded().out
    assert f"travel          {result['metrics']['travel']['mean']:.4g}\n" in out
    assert f"win rate        {result['metrics']['is_success']['mean']:.2f}".split() == out.splitlines()[-1].split()[:3]


def test_the_best_policy_is_chosen_by_the_metric(run, tmp_path):
    run, _ = run
    kept = read_checkpoint(run / "best.safetensors")
    assert kept["progress"]["step"] == 96, "envs are older in every evaluation"
    assert kept["best_metric"] == "age"
    lower = tmp_path / "run"
    train(ENV, lower, *TINY, *EVALUATED, "--steps", 96, "--train.best_metric", "-age")
    kept = read_checkpoint(lower / "best.safetensors")
    assert (kept["progress"]["step"], kept["best_metric"]) == (32, "-age")
    assert kept["best_score"] == -column(lower, "eval/age")[0]
    surefoot("resume", lower, "--steps", 128, "--train.best_metric", "age").succeeded()
    assert read_checkpoint(lower / "best.safetensors")["progress"]["step"] == 128, "compared from the start"
    assert "chosen by -age, but train.best_metric is age now" in (lower / "log.txt").read_text()


def test_an_unknown_metric_is_refused_before_anything_is_trained(tmp_path):
    finished = surefoot("train", ENV, "--run-dir", tmp_path / "run", *TINY, "--train.best_metric", "travl")
    assert finished.code == 2
    assert "train.best_metric" in finished.err
    assert "win_rate, travel, angle, is_success, age; prefix it with '-'" in finished.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("engine", ["local", "processes"])
def test_a_resumed_run_with_parameters_set_is_the_whole_run_bit_for_bit(tmp_path, engine):
    """And the same on both engines: a hook sets the parameter of every row in the first three iterations."""
    config = tmp_path / "hook.yaml"
    config.write_text("hooks:\n  push: tests.cli.pushing:Pushing\n")
    settings = (*TINY, "--rollout.engine", engine, "--rollout.workers", 2)
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    train(ENV, whole, *settings, *HOOK, "--steps", 192)
    train(ENV, resumed, *settings, "--config", config, "--steps", 128)
    middle = newest(resumed)["collector"]
    assert middle["envs"]["parameters"]["push"].tolist() == [12.0, 13.0]
    assert (middle["episodes"]["metrics"]["total"][:, 0] > 0).all(), "in the middle of episodes"
    surefoot("resume", resumed, "--steps", 192).succeeded()
    assert_same(newest(resumed), newest(whole))
    assert records(resumed) == records(whole)
    assert column(whole, "push/mean") == [10.5, 11.5, 12.5, 12.5, 12.5, 12.5]
    other = tmp_path / "other"
    train(ENV, other, *TINY, "--rollout.engine", "local", *HOOK, "--steps", 192)
    for name in NAMES:
        assert column(other, name) == column(whole, name)


def test_a_setting_picks_keys_of_any_env(tmp_path):
    run = tmp_path / "run"
    chosen = ("--env.metrics", "{x_position: last, reward_ctrl: sum}", "--env.max_episode_steps", 10)
    train("HalfCheetah-v5", run, *TINY, *chosen, "--steps", 32)
    assert {name for name in records(run)[-1] if name.startswith("env/")} == {"env/x_position", "env/reward_ctrl"}
    wrong = surefoot("train", "HalfCheetah-v5", "--run-dir", tmp_path / "no", "--env.metrics", "{x_position: max}")
    assert wrong.code == 2
    assert "env.metrics" in wrong.err
