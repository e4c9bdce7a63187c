"""S15: `train 2K` is `train K`, then `resume` in a new process, bit for bit; and what resume refuses."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from torch import nn

from surefoot import PPO
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import surefoot
from tests.cli.runs import QUIET, TINY, newest, records, saved_steps, train
from tests.training.states import assert_same

CONSTANT = ("--optimizer.lr_schedule", "constant", "--ppo.clip_schedule", "constant")
NORMALIZE = ("--normalize.obs", "--normalize.reward", "--normalize.returns")
SMALL = ("--policy.hidden", "8,4", "--ppo.epochs", 2, "--train.eval_episodes", 0, *QUIET, *CONSTANT)
RUNS = {
    "CartPole-v1": (*SMALL, "--rollout.num_envs", 3, "--rollout.num_steps", 30, "--ppo.batch_size", 45),
    "Pendulum-v1": (
        *(*SMALL, *NORMALIZE, "--rollout.num_envs", 2, "--rollout.num_steps", 33, "--ppo.batch_size", 22),
        *("--env.max_episode_steps", 50),
    ),
    "HalfCheetah-v5": (*SMALL, "--rollout.num_envs", 2, "--rollout.num_steps", 64, "--ppo.batch_size", 64),
    "CartPoleNoVel-v1": (
        *(*SMALL, "--normalize.obs", "--policy.memory", "lstm", "--policy.memory.layers", 2, "--ppo.burn_in", 5),
        *("--policy.memory.hidden_size", 8, "--rollout.sequence_length", 8),
        *("--rollout.num_envs", 3, "--rollout.num_steps", 30, "--ppo.batch_size", 45),
    ),
}


def assert_same_run(actual: Path, expected: Path) -> None:
    assert_same(newest(actual), newest(expected))
    assert records(actual) == records(expected)


@pytest.mark.parametrize("engine", ["native", "local"])
@pytest.mark.parametrize("env", RUNS)
def test_a_resumed_run_is_the_whole_run_bit_for_bit(tmp_path, env, engine):
    settings = (*RUNS[env], "--rollout.engine", engine)
    half = {"CartPole-v1": 180, "Pendulum-v1": 132, "HalfCheetah-v5": 128, "CartPoleNoVel-v1": 180}[env]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    train(env, whole, *settings, "--steps", 2 * half)
    train(env, resumed, *settings, "--steps", half)
    middle = newest(resumed)
    assert list(middle["collector"]["envs"]) == ["rows" if engine == "native" else "envs"]
    assert middle["progress"]["step"] == half
    assert (middle["collector"]["episodes"]["length"] > 0).all(), "in the middle of episodes"
    assert len(middle["collector"]["memory"]) == (4 if env == "CartPoleNoVel-v1" else 0)
    assert all(part.abs().min() > 0 for part in middle["collector"]["memory"])
    surefoot("resume", resumed, "--steps", 2 * half).succeeded()
    assert_same_run(resumed, whole)
    end = newest(whole)
    assert set(end) >= {"policy", "gradient", "objective", "scorer", "schedules", "collector", "progress", "hooks"}
    if env == "Pendulum-v1":
        assert end["policy"]["preprocess.normalizers.obs.count"] == 2 * half
        assert end["policy"]["critic.returns.count"] == 2 * half
        assert end["scorer"]["reward_scaler"]["count"] == 2 * half


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_an_interrupted_run_goes_on_with_its_schedules_and_evaluations(tmp_path, schedule):
    """The total is the same, so the schedules must be; an evaluation comes when it would have come."""
    kwargs = json.dumps({"at": 70, "numbers": [int(signal.SIGTERM)], "done": str(tmp_path / "done")})
    settings = (
        *(*TINY, "--rollout.num_envs", 1, "--env.kwargs", kwargs, "--env.max_episode_steps", 20),
        *("--optimizer.lr_schedule", schedule, "--ppo.clip_schedule", schedule, "--ppo.entropy_schedule", schedule),
        *(
            "--ppo.entropy_coef",
            0.1,
            "--steps",
            128,
            "--train.eval_episodes",
            2,
            "--train.eval_every",
            60,
            "--train.checkpoint_every",
            32,
        ),
    )
    run, whole = tmp_path / "run", tmp_path / "whole"
    env = "tests.cli.odd_envs:Signalling-v0"
    assert surefoot("train", env, "--run-dir", run, *settings).code == 143
    assert saved_steps(run) == [80, 64, 32]
    surefoot("resume", run).succeeded()
    train(env, whole, *settings)
    assert_same_run(run, whole)
    assert [record["step"] for record in records(whole) if "eval/mean_reward" in record] == [64, 128]
    rates = [record["train/learning_rate"] for record in records(whole)]
    assert sorted(set(rates), reverse=True) == rates
    # Both have kept the same best policy.
    best, expected = surefoot("evaluate", run, "--json"), surefoot("evaluate", whole, "--json")
    assert json.loads(best.succeeded().out)["rewards"] == json.loads(expected.succeeded().out)["rewards"]


@pytest.mark.parametrize("step", [64, 128])
def test_an_evaluation_that_was_killed_is_made_up_for(tmp_path, step):
    """Its checkpoint was saved before it; after the last iteration too, where nothing else is left to do."""
    run, whole = tmp_path / "run", tmp_path / "whole"
    after, done = run / f"checkpoints/step_{step:012d}.safetensors", tmp_path / "done"
    settings = (
        *(*TINY, "--env.max_episode_steps", 20, "--steps", 128, "--train.checkpoint_every", 32),
        *("--train.eval_episodes", 2, "--train.eval_every", 60),
        *("--env.kwargs", json.dumps({"after": str(after), "done": str(done)})),
    )
    env = "tests.cli.odd_envs:KilledWhenNew-v0"
    assert surefoot("train", env, "--run-dir", run, *settings).code == -signal.SIGKILL
    assert newest(run)["evaluation_due"]
    assert saved_steps(run)[0] == step
    surefoot("resume", run).succeeded()
    train(env, whole, *settings)
    assert_same(newest(run), newest(whole))
    assert (run / "evaluations.jsonl").read_text() == (whole / "evaluations.jsonl").read_text()
    assert_same(*(read_checkpoint(folder / "best.safetensors") for folder in (run, whole)))
    assert records(run) == records(whole)
    surefoot("resume", run).refused()


def test_a_run_can_be_interrupted_often(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    settings = (*TINY, *CONSTANT, *NORMALIZE)
    train("Pendulum-v1", whole, *settings, "--steps", 128)
    train("Pendulum-v1", resumed, *settings, "--steps", 32)
    for steps in (64, 96, 128):
        surefoot("resume", resumed, "--steps", steps).succeeded()
    assert_same_run(resumed, whole)


def test_the_installed_command_does_the_same(tmp_path):
    """Nothing of the test's own: the script that users run, from the shell."""
    command = Path(sys.executable).with_name("surefoot")

    def run(*arguments: object) -> str:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    half, whole = tmp_path / "half", tmp_path / "whole"
    run("train", "CartPole-v1", "--run-dir", half, *TINY, *CONSTANT, "--steps", 64)
    assert f"resuming {half} from step_000000000064.safetensors\n" in run("resume", half, "--steps", 128)
    train("CartPole-v1", whole, *TINY, *CONSTANT, "--steps", 128)
    assert_same_run(half, whole)


def test_envs_that_cannot_save_their_state_go_on_with_new_episodes(tmp_path):
    run = tmp_path / "run"
    train("tests.cli.odd_envs:Forgetful-v0", run, *TINY, "--steps", 96)
    before = newest(run)
    assert before["collector"]["envs"] is None
    assert "these environments cannot save their state" in (run / "log.txt").read_text()
    resumed = surefoot("resume", run, "--steps", 192).succeeded()
    assert f"resuming {run} from step_000000000096.safetensors" in resumed.out
    log = (run / "log.txt").read_text()
    assert "WARNING resumed at step 96 with new episodes: these environments cannot restore their state" in log
    assert "but not bit for bit" in log
    after = newest(run)
    assert [record["step"] for record in records(run)] == [32, 64, 96, 128, 160, 192]
    assert after["gradient"]["adam"]["step"] == 2 * before["gradient"]["adam"]["step"]
    # The episodes of before count in the statistics, the one that was cut off does not.
    kept = before["collector"]["episodes"]["recent"]
    assert after["collector"]["episodes"]["recent"][: len(kept)] == kept


def test_what_is_no_run_is_refused(tmp_path):
    message = surefoot("resume", tmp_path).refused()
    assert f"{tmp_path} is not a run directory (it has no config.yaml)" in message
    assert list(tmp_path.iterdir()) == []
    assert "is not a run directory" in surefoot("resume", tmp_path / "nowhere").refused()
    assert surefoot("resume").code == 2


def test_any_checkpoint_continues_in_a_directory_of_its_own(tmp_path):
    """`--checkpoint STEP --run-dir NEW`: bit for bit what the run itself did after that step."""
    run, new = tmp_path / "run", tmp_path / "new"
    settings = (*TINY, "--train.checkpoint_every", 32, "--train.eval_episodes", 2, "--train.eval_every", 64)
    train("CartPole-v1", run, *settings, "--steps", 128)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for step in ("x", "1.5", "nan"):
        said = surefoot("resume", run, "--checkpoint", step).refused()
        assert "--checkpoint: pass the step of a checkpoint" in said
    continued = surefoot("resume", run, "--checkpoint", "6.4e1", "--run-dir", new).succeeded()
    assert f"resuming {run} from step_000000000064.safetensors in {new}" in continued.out
    assert_same_run(new, run)
    for name in ("checkpoints/step_000000000128.safetensors", "best.safetensors", "evaluations.jsonl"):
        assert (new / name).read_bytes() == (run / name).read_bytes(), name
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    # With other settings, and from the checkpoint that was taken over.
    other = tmp_path / "other"
    surefoot("resume", new, "--checkpoint", 64, "--run-dir", other, "--optimizer.lr", 1e-5, "--steps", 96).succeeded()
    assert [record["step"] for record in records(other)] == [32, 64, 96]
    assert records(other)[:2] == records(run)[:2]
    assert records(other)[2] != records(run)[2]


def test_checkpoints_that_do_not_exist_or_would_be_overwritten(tmp_path):
    run = tmp_path / "run"
    train("CartPole-v1", run, *TINY, "--train.checkpoint_every", 32, "--steps", 96)
    message = surefoot("resume", run, "--checkpoint", 40, "--run-dir", tmp_path / "new").refused()
    assert f"{run} has no checkpoint of step 40; it has steps 32, 64, 96" in message
    assert not (tmp_path / "new").exists()
    message = surefoot("resume", run, "--checkpoint", 32, "--steps", 128).refused()
    assert "newer checkpoints, up to step_000000000096.safetensors" in message
    assert "add --run-dir NEW" in message
    assert saved_steps(run) == [96, 64, 32]
    assert "already contains a run" in surefoot("resume", run, "--checkpoint", 32, "--run-dir", run).refused()
    surefoot("resume", run, "--checkpoint", 96, "--steps", 128).succeeded()


def test_a_new_directory_is_left_as_it_was_if_its_run_cannot_be_built(tmp_path):
    """Then the Python that the error names can use it."""
    run, new, encoder = tmp_path / "run", tmp_path / "new", nn.Linear(4, 8)
    PPO("CartPole-v1", encoder=encoder, num_envs=2, num_steps=32, batch_size=64).learn(128, run_dir=run)
    message = surefoot("resume", run, "--checkpoint", 128, "--run-dir", new, "--steps", 256).refused()
    assert "encoder=YOUR_ENCODER" in message
    assert {path.name for path in new.rglob("*") if path.is_file()} <= {"lock", "log.txt"}
    PPO.load(run / "checkpoints/step_000000000128.safetensors", encoder=encoder).learn(128, run_dir=new)
    assert saved_steps(new)[0] == 256


@pytest.mark.parametrize("moment", ["evaluation", "no line", "half a line", "older"])
def test_the_metrics_have_one_line_per_step_whatever_was_killed(tmp_path, moment):
    """What a kill at that moment leaves, made from a whole run; `older` loses the newest checkpoint as well."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    every = () if moment != "evaluation" else ("--train.eval_episodes", 2, "--train.eval_every", 64)
    settings = (*TINY, *CONSTANT, *every, "--train.checkpoint_every", 32, "--log.tensorboard", "true")
    train("CartPole-v1", whole, *settings, "--steps", 160)
    if moment == "evaluation":
        after, done = run / "checkpoints/step_000000000128.safetensors", tmp_path / "done"
        odd = ("--env.kwargs", json.dumps({"after": str(after), "done": str(done)}))
        killed = surefoot(
            "train", "tests.cli.odd_envs:KilledWhenNew-v0", "--run-dir", run, *settings, *odd, "--steps", 160
        )
        assert killed.code == -signal.SIGKILL
    else:
        train("CartPole-v1", run, *settings, "--steps", 128)
        lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
        left = {"no line": lines[:3], "half a line": [*lines[:3], lines[3][:50]], "older": lines}[moment]
        (run / "metrics.jsonl").write_text("".join(left))
        if moment == "older":
            RunDirectory(run).saved()[0].unlink()
    surefoot("resume", run, "--steps", 160).succeeded()
    assert [record["step"] for record in records(run)] == [32, 64, 96, 128, 160]
    if moment != "evaluation":
        assert records(run) == records(whole)
    else:
        assert [record["step"] for record in records(run) if "eval/mean_reward" in record] == [64, 128, 160]
    assert tensorboard_steps(run) == [32, 64, 96, 128, 160]
    assert [path for path in run.iterdir() if path.suffix == ".tmp"] == []


def tensorboard_steps(run: Path) -> list[int]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run))
    events.Reload()
    return [event.step for event in events.Scalars("train/approx_kl")]


def test_a_finished_run_whose_last_line_is_missing_gets_it(tmp_path):
    run = tmp_path / "run"
    train("CartPole-v1", run, *TINY, "--steps", 64)
    whole = records(run)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text(lines[0])
    surefoot("resume", run).succeeded()
    assert records(run) == whole
    surefoot("resume", run).refused()


def test_equal_runs_have_equal_files(tmp_path):
    """Byte for byte: nothing in a checkpoint says when or where it was written."""
    for name in ("one", "two"):
        settings = (*TINY, "--train.eval_episodes", 2, "--train.checkpoint_every", 32)
        train("Pendulum-v1", tmp_path / name, *settings, *NORMALIZE, "--steps", 96)
    for name in ("step_000000000032", "step_000000000096"):
        one, two = ((tmp_path / run / "checkpoints" / f"{name}.safetensors").read_bytes() for run in ("one", "two"))
        assert one == two
    assert (tmp_path / "one/best.safetensors").read_bytes() == (tmp_path / "two/best.safetensors").read_bytes()
