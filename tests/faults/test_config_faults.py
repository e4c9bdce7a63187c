"""Faults 25 and 26: settings that are wrong, and settings that change on resume."""

import shutil
from pathlib import Path

import pytest
import yaml

from surefoot.api import PPO
from surefoot.errors import ConfigError
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, column, newest, records, saved_steps, train
from tests.training.states import assert_same

pytestmark = pytest.mark.xdist_group("config faults")

# Fault 25.


@pytest.fixture
def tracing(tmp_path) -> list[object]:
    """Arguments that train an env which leaves a file `trace` when it is made."""
    kwargs = f"{{trace: {tmp_path / 'trace'}}}"
    return ["train", "tests.cli.odd_envs:Tracing-v0", "--env.kwargs", kwargs, "--run-dir", tmp_path / "run", *TINY]


def test_the_env_does_leave_a_trace(tracing, tmp_path):
    surefoot(*tracing, "--steps", 32).succeeded()
    assert (tmp_path / "trace").exists()


WRONG = {
    "ppo.gamma": (1.5, "ppo.gamma: input should be less than or equal to 1 (got '1.5')"),
    "optimizer.lr": ("nan", "optimizer.lr: input should be a finite number"),
    "ppo.epoch": (3, "ppo.epoch: unknown key; did you mean 'ppo.epochs'?"),
    "ppo.lr": (3, "ppo.lr: unknown key; did you mean 'optimizer.lr'?"),
    "polcy.hidden": (8, "polcy: unknown section; did you mean 'policy'?"),
    "ppo.batch_size": (7, "ppo.batch_size: 7 does not divide the rollout of 32 steps"),
    "policy.activation": ("tan", "policy.activation: input should be 'tanh', 'relu'"),
    "train.seed": ("many", "train.seed: input should be a valid integer"),
}


def test_everything_wrong_is_said_at_once_before_envs_are_made(tracing, tmp_path):
    arguments = [part for key, (value, _) in WRONG.items() for part in (f"--{key}", value)]
    message = surefoot(*tracing, *arguments).refused()
    assert message.startswith(f"error: {len(WRONG)} invalid settings:\n")
    for _, expected in WRONG.values():
        assert f"\n  - {expected}" in message
    assert message.count("\n") == len(WRONG) + 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", WRONG)
def test_each_alone_is_one_line(tracing, tmp_path, key):
    value, expected = WRONG[key]
    message = surefoot(*tracing, f"--{key}={value}").refused()
    assert message.startswith(f"error: {expected}")
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_and_the_command_line_are_wrong_together(tracing, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("ppo: {gamma: -1}\noptimiser: {lr: 1}\n")
    message = surefoot(*tracing, "--config", file, "--ppo.clip", 0).refused()
    assert "3 invalid settings" in message
    for expected in ("ppo.gamma: ", "optimiser: unknown section; did you mean 'optimizer'?", "ppo.clip: "):
        assert f"  - {expected}" in message
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ppo: [", "is not valid YAML"),
        ("- 1\n- 2\n", "must contain sections such as 'ppo:'"),
        ("normalize: 3\n", "normalize: input should be a valid dictionary"),
        ("1: {gamma: 0.9}\n", "1: unknown section"),
        (b"\xff\xfe\x00", "is not valid YAML"),
        (None, "cannot read the config file"),
    ],
)
def test_config_files_that_cannot_be_used(tracing, tmp_path, content, expected):
    file = tmp_path / "config.yaml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    message = surefoot(*tracing, "--config", file).refused()
    assert expected in message
    assert message.count("\n") == 1
    assert not (tmp_path / "trace").exists()


def test_debug_shows_the_traceback(tracing):
    finished = surefoot(*tracing, "--ppo.gamma", 2, "--debug")
    assert finished.code == 1
    assert "Traceback" in finished.err
    assert "surefoot.errors.ConfigError: ppo.gamma" in finished.err


def test_the_python_surface_says_the_same(tmp_path):
    with pytest.raises(ConfigError) as caught:
        PPO(
            "tests.cli.odd_envs:Tracing-v0",
            kwargs={"trace": str(tmp_path / "trace")},
            gamma=2,
            learning_rate=1,
            ppo={"clp": 1},
        )
    assert len(caught.value.problems) == 3
    assert any("gamma" in problem for problem in caught.value.problems)
    assert any(problem.startswith("learning_rate: unknown") for problem in caught.value.problems)
    assert "ppo.clp: unknown key; did you mean 'ppo.clip'?" in caught.value.problems
    assert not (tmp_path / "trace").exists()


# Fault 26.

CONSTANT = (*TINY, "--ppo.clip_schedule", "constant", "--optimizer.lr_schedule", "constant")


@pytest.fixture(scope="module")
def half(tmp_path_factory) -> Path:
    """64 steps of a run in iterations of 32, two checkpoints."""
    run = tmp_path_factory.mktemp("config_faults") / "half"
    train("CartPole-v1", run, *CONSTANT, "--steps", 64, "--train.checkpoint_every", 32)
    return run


@pytest.fixture
def run(half, tmp_path) -> Path:
    return Path(shutil.copytree(half, tmp_path / "run"))


CHANGES = (
    *("--optimizer.lr", 0.0007, "--ppo.clip", 0.15, "--ppo.epochs", 3, "--ppo.batch_size", 8),
    *("--ppo.entropy_coef", 0.02, "--train.keep_checkpoints", 1, "--train.checkpoint_every", 64),
)


def test_what_may_change_is_used(run):
    before = newest(run)
    surefoot("resume", run, "--steps", 128, *CHANGES).succeeded()
    assert column(run, "train/learning_rate") == [0.003, 0.003, 0.0007, 0.0007]
    assert column(run, "train/clip_range") == [0.3, 0.3, 0.15, 0.15]
    assert column(run, "train/entropy_coef") == [0, 0, 0.02, 0.02]
    assert column(run, "train/epochs") == [2, 2, 3, 3]
    assert saved_steps(run) == [128]
    after = newest(run)
    # 2 iterations of 2 epochs of 2 minibatches, then 2 of 3 epochs of 4.
    assert tuple(int(state["gradient"]["adam"]["step"]) for state in (before, after)) == (8, 8 + 24)
    assert after["config"]["optimizer"]["lr"] == 0.0007
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert written == {"preset": "none", **after["config"]}
    # And they stay.
    surefoot("resume", run, "--steps", 160).succeeded()
    assert column(run, "train/learning_rate")[-1] == 0.0007


def test_an_edited_config_file_counts_as_asked_for(run):
    edited = yaml.safe_load((run / "config.yaml").read_text())
    edited["optimizer"]["lr"], edited["train"]["steps"] = 0.0005, 96
    (run / "config.yaml").write_text(yaml.safe_dump(edited))
    surefoot("resume", run).succeeded()
    assert column(run, "train/learning_rate") == [0.003, 0.003, 0.0005]


def test_what_may_not_change_is_refused_in_full(run):
    before = (run / "config.yaml").read_text(), (run / "metrics.jsonl").read_text(), saved_steps(run)
    changes = {
        "env.id": "Acrobot-v1",
        "env.max_episode_steps": 100,
        "policy.hidden": 8,
        "policy.activation": "relu",
        "normalize.obs": "true",
        "train.seed": 5,
    }
    arguments = [part for item in changes.items() for part in (f"--{item[0]}", item[1])]
    message = surefoot("resume", run, "--steps", 96, "--ppo.clip", 0.1, *arguments).refused()
    assert "6 invalid settings" in message
    for key in changes:
        assert f"\n  - {key}: cannot change on resume (the run has " in message
    assert "policy.hidden: cannot change on resume (the run has (4,), requested (8,)); start a new run" in message
    assert "ppo.clip" not in message
    after = (run / "config.yaml").read_text(), (run / "metrics.jsonl").read_text(), saved_steps(run)
    assert after == before


def test_bad_values_are_refused_on_resume_too(run):
    message = surefoot("resume", run, "--steps", 96, "--ppo.gamma", 3, "--ppo.clipp", 1).refused()
    assert "2 invalid settings" in message
    assert "did you mean 'ppo.clip'?" in message


def test_a_run_that_is_done_says_so(run):
    message = surefoot("resume", run).refused()
    assert "is at step 64 and has already finished its 64 steps; pass a larger total with --steps" in message


def test_another_number_of_envs_goes_on_with_new_episodes(run):
    surefoot("resume", run, "--steps", 192, "--rollout.num_envs", 4).succeeded()
    assert column(run, "step") == [32, 64, 128, 192]
    assert "resumed at step 64 with new episodes" in (run / "log.txt").read_text()


# The KL-adaptive learning rate.

ADAPTIVE = (*CONSTANT, "--optimizer.lr_schedule", "kl_adaptive", "--optimizer.lr", 0.001)


@pytest.fixture(scope="module")
def adaptive(tmp_path_factory) -> tuple[Path, Path]:
    """A run of 96 steps, and one of 192."""
    folder = tmp_path_factory.mktemp("adaptive")
    for name, steps in (("short", 96), ("long", 192)):
        train("CartPole-v1", folder / name, *ADAPTIVE, "--steps", steps)
    return folder / "short", folder / "long"


def test_the_adaptive_rate_is_restored(adaptive, tmp_path):
    short, long = Path(shutil.copytree(adaptive[0], tmp_path / "run")), adaptive[1]
    rates = column(long, "train/learning_rate")
    assert rates[0] == 0.001
    assert rates[3] != 0.001, "it has moved"
    surefoot("resume", short, "--steps", 192).succeeded()
    assert column(short, "train/learning_rate") == rates
    assert records(short) == records(long)
    assert_same(newest(short), newest(long))


def test_a_rate_that_the_user_has_set_wins(adaptive, tmp_path):
    short = Path(shutil.copytree(adaptive[0], tmp_path / "run"))
    surefoot("resume", short, "--steps", 128, "--optimizer.lr", 0.0004).succeeded()
    assert column(short, "train/learning_rate")[3] == 0.0004
