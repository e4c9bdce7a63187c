"""`surefoot train`: where settings come from, and what a run leaves."""

import json
import os
from pathlib import Path

import pytest
import yaml

from surefoot import PPO
from surefoot.cli.arguments import split_settings
from surefoot.cli.train import chosen
from surefoot.presets import load_preset
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from tests.cli.processes import Process, surefoot
from tests.cli.runs import TINY, column, newest, records, saved_steps, train
from tests.training.states import assert_same

pytestmark = pytest.mark.xdist_group("train")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, str]:
    """A run with evaluations and TensorBoard, and what was printed."""
    run = tmp_path_factory.mktemp("train") / "run"
    events = ("--log.tensorboard", "true", "--train.eval_episodes", 3, "--train.eval_every", 64)
    finished = train("CartPole-v1", run, *TINY, *events, "--steps", 160, "--train.checkpoint_every", 32)
    return run, finished.out


def test_a_run_directory_holds_what_the_design_says(trained):
    run, _ = trained
    names = sorted(path.name for path in run.iterdir())
    events = [name for name in names if name.startswith("events.out.tfevents.")]
    assert len(events) == 1
    files = ("best.safetensors", "config.yaml", "evaluations.jsonl", "lock", "log.txt", "metrics.jsonl")
    assert names == sorted(["checkpoints", *files, *events])
    assert saved_steps(run) == [160, 128, 96], "three are kept"
    assert not list(run.rglob("*.tmp"))


def test_the_metrics_have_the_names_that_dashboards_know(trained):
    run, _ = trained
    last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
    for name in (
        *("rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps", "train/approx_kl", "train/clip_fraction"),
        *("train/explained_variance", "train/policy_gradient_loss", "train/value_loss", "train/entropy_loss"),
        *("train/learning_rate", "eval/mean_reward"),
    ):
        assert name in last
    assert column(run, "step") == [32, 64, 96, 128, 160]
    assert [record["step"] for record in records(run) if "eval/mean_reward" in record] == [64, 128, 160]


def test_tensorboard_reads_the_events(trained):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, _ = trained
    events = EventAccumulator(str(run)).Reload()
    scalars = events.Scalars("train/learning_rate")
    assert [scalar.step for scalar in scalars] == [32, 64, 96, 128, 160]
    assert [scalar.value for scalar in scalars] == pytest.approx(column(run, "train/learning_rate"))


def test_the_best_policy_is_the_one_that_scored_best(trained):
    run, _ = trained
    from surefoot.training.checkpoint import read_checkpoint

    best = read_checkpoint(run / "best.safetensors")
    scores = {record["step"]: record["eval/mean_reward"] for record in records(run) if "eval/mean_reward" in record}
    assert best["best_score"] == max(scores.values())
    assert scores[best["progress"]["step"]] == max(scores.values())


def test_the_end_says_how_it_went_and_where_everything_is(trained):
    run, out = trained
    for line in (
        "trained 160 steps",
        "evaluated ",
        f"run       {run}  (config.yaml, metrics.jsonl, log.txt, TensorBoard events)",
        f"newest    {run / 'checkpoints' / 'step_000000000160.safetensors'}",
        f"best      {run / 'best.safetensors'}",
        f"next      surefoot evaluate {run}\n",
        f"          surefoot doctor {run}\n          surefoot report {run}\n",
        f"          tensorboard --logdir {run.parent}\n",
    ):
        assert line in out


def test_the_log_tells_the_story(trained):
    run, _ = trained
    log = (run / "log.txt").read_text()
    assert "CartPole-v1, seed 0, from step 0 to 160" in log
    assert log.count("checkpoint at step") == 5
    assert log.count("evaluation at step") == 3
    assert "WARNING" not in log


def test_the_config_is_complete_and_gives_the_same_run_again(trained, tmp_path):
    run, _ = trained
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert set(written) == {*Config.model_fields, "preset"}
    assert {"preset": "none", **build_config(written).model_dump(mode="json")} == written
    again = tmp_path / "again"
    surefoot("train", "--config", run / "config.yaml", "--run-dir", again).succeeded()
    assert records(again) == records(run)
    assert_same(newest(again), newest(run))
    assert (again / "config.yaml").read_text() == (run / "config.yaml").read_text()


def test_the_seed_decides(trained, tmp_path):
    run, _ = trained
    surefoot("train", "--config", run / "config.yaml", "--run-dir", tmp_path / "other", "--seed", 1).succeeded()
    assert records(tmp_path / "other")[0] != records(run)[0]


def test_a_directory_that_holds_a_run_is_refused(trained):
    run, _ = trained
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    message = surefoot("train", "CartPole-v1", "--run-dir", run, *TINY).refused()
    assert f"{run} already contains a run; continue it with 'surefoot resume {run}'" in message
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def _train_in(folder: Path, arguments: list[object]) -> None:
    from surefoot.cli.main import main

    os.chdir(folder)
    raise SystemExit(main([str(argument) for argument in arguments]))


def test_runs_are_named_after_their_target_and_never_mixed(tmp_path):
    for _ in range(2):
        Process(_train_in, tmp_path, ["train", "CartPole-v1", *TINY, "--steps", 32]).wait().succeeded()
    file = tmp_path / "mine.yaml"
    file.write_text("env: {id: 'tests.cli.odd_envs:Forgetful-v0'}\n")
    Process(_train_in, tmp_path, ["train", "--config", file, *TINY, "--steps", 32]).wait().succeeded()
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["CartPole-v1", "CartPole-v1-2", "tests.cli.odd_envs_Forgetful-v0"]


def test_preset_then_file_then_command_line(tmp_path):
    preset = load_preset("CartPole-v1")
    file = tmp_path / "mine.yaml"
    file.write_text("ppo: {gamma: 0.9, gae_lambda: 0.7}\noptimizer.lr: 0.002\ntrain: {steps: 64, seed: 4}\n")
    settings = (*TINY, "--ppo.gae_lambda", 0.6, "--train.seed", 5)
    train("CartPole-v1", tmp_path / "run", "--config", file, *settings, "--seed", 6)
    config = build_config(yaml.safe_load((tmp_path / "run" / "config.yaml").read_text()))
    assert config.schedules["lr"].kind == preset["schedules"]["lr"] == "linear"
    assert config.ppo.gamma == 0.9
    assert config.optimizer.lr == 0.002
    assert config.ppo.gae_lambda == 0.6
    assert config.train.steps == 64
    assert config.train.seed == 6, "a command's own option comes last"


@pytest.mark.parametrize(
    ("arguments", "file", "preset"),
    [
        (["Pendulum-v1"], None, "Pendulum-v1"),
        ([], "env: {id: Pendulum-v1}", "Pendulum-v1"),
        (["--env.id", "Pendulum-v1"], None, "Pendulum-v1"),
        (["pettingzoo:mpe2.simple_spread_v3"], None, ""),
        (["HalfCheetah-v5"], None, "HalfCheetah-v5"),
        (["cheetah-minute"], None, "cheetah-minute"),
        ([], "preset: cheetah-minute", "cheetah-minute"),
        (["HalfCheetah-v5", "--preset", "cheetah-minute"], None, "cheetah-minute"),
        (["Pendulum-v1", "--preset", "none"], None, ""),
        (["Pendulum-v1"], "preset: none", ""),
        (["Pendulum-v1", "--preset", "Pendulum-v1"], "preset: none", "Pendulum-v1"),
        (["MountainCar-v0"], None, ""),
    ],
)
def test_one_rule_says_which_preset(tmp_path, arguments, file, preset):
    """In a command, in a file and in Python."""
    rest, settings = split_settings(arguments)
    target = rest[0] if rest and not rest[0].startswith("--") else None
    named = {"preset": rest[rest.index("--preset") + 1]} if "--preset" in rest else {}
    path = tmp_path / "mine.yaml"
    path.write_text(file or "")
    found = chosen(target, path if file else None, settings, named)
    assert found.preset == preset
    base = load_preset(preset) if preset else {"env": {"id": target}}
    assert found.config.model_dump() == build_config(base).model_dump()
    assert (preset or "none for") in found.line
    if target and not file and target.endswith(("v0", "v1")):
        assert PPO(target, **named).config.ppo == found.config.ppo


def test_a_run_says_which_preset_it_has_and_its_config_adds_none(tmp_path):
    bare = tmp_path / "bare.yaml"
    bare.write_text("schedules: {lr: null, clip: null}")
    first = train("CartPole-v1", tmp_path / "run", *TINY, "--steps", 32, "--config", bare)
    assert "preset    CartPole-v1 (" in first.out
    assert "none for MountainCar-v0" in train("MountainCar-v0", tmp_path / "other", *TINY, "--steps", 32).out
    written = tmp_path / "run" / "config.yaml"
    surefoot("train", "--config", written, "--run-dir", tmp_path / "again").succeeded()
    assert (tmp_path / "again" / "config.yaml").read_text() == written.read_text()


def test_an_unknown_preset_is_refused(tmp_path):
    message = surefoot("train", "CartPole-v1", "--preset", "CartPole", "--run-dir", tmp_path / "run").refused()
    assert "unknown preset 'CartPole'; did you mean 'CartPole-v1'?" in message
    assert list(tmp_path.iterdir()) == []


def test_without_a_target_the_default_preset_is_trained(tmp_path):
    surefoot("train", "--run-dir", tmp_path / "run", *TINY, "--steps", 32).succeeded()
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    preset = load_preset("cheetah-minute")
    assert config["env"]["id"] == preset["env"]["id"] == "HalfCheetah-v5"
    assert config["schedules"]["lr"]["kind"] == preset["schedules"]["lr"] == "linear"
    assert config["normalize"]["reward"] is preset["normalize"]["reward"] is True


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("CartPol-v1", "CartPole-v1"), ("HalfCheeta-v5", "HalfCheetah-v5"), ("Acrobot-v2", "Acrobot-v1")],
)
def test_an_unknown_target_suggests_the_nearest(tmp_path, typed, meant):
    message = surefoot("train", typed, "--run-dir", tmp_path / "run").refused()
    assert message == f"error: '{typed}' is neither a preset nor a registered Gymnasium id; did you mean '{meant}'?\n"
    assert list(tmp_path.iterdir()) == []


def test_an_env_that_cannot_be_made_is_refused(tmp_path):
    message = surefoot("train", "no_such_module:Env-v0", "--run-dir", tmp_path / "run", *TINY).refused()
    assert "environment 'no_such_module:Env-v0' could not be created" in message
    message = surefoot(
        "train", "--env.id", "CartPole-v1", "--env.kwargs", "{gravity: 3}", *TINY, "--run-dir", tmp_path / "x"
    )
    assert "does not accept env.kwargs {'gravity': 3}" in message.refused()


def test_a_discrete_observation_and_no_preset(tmp_path):
    train("FrozenLake-v1", tmp_path / "run", *TINY, "--steps", 32)
    assert newest(tmp_path / "run")["obs_spec"]["kind"] == "discrete"


def test_nothing_is_evaluated_when_asked_not_to(tmp_path):
    finished = train("CartPole-v1", tmp_path / "run", *TINY, "--steps", 32)
    assert not (tmp_path / "run" / "best.safetensors").exists()
    assert "evaluated " not in finished.out
    assert "best " not in finished.out
    assert "TensorBoard" not in finished.out, "and no events were asked for"


def test_the_console_can_be_silent(tmp_path):
    finished = train("CartPole-v1", tmp_path / "run", *TINY, "--steps", 64, "--log.console", "off")
    assert finished.err == ""
    assert "ETA" not in finished.out


def test_a_policy_that_does_not_fit_leaves_no_run_behind(tmp_path):
    surefoot("train", "CartPole-v1", "--policy.distribution", "beta", "--run-dir", tmp_path / "run").refused()
    assert not (tmp_path / "run").exists()
