"""Several processes train one policy: the result is that of one process, and they save, stop and fail together."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch

from surefoot.envs.make import make_vec_env
from surefoot.errors import ConfigError
from surefoot.machine.cores import available_cores
from surefoot.machine.ranks import Ranks
from surefoot.settings.config import EnvConfig
from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import Finished, Process
from tests.training.rank_cases import CASES, UPDATES, main
from tests.training.rank_runs import checkpoint

pytestmark = pytest.mark.xdist_group("ranks")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LEARNED = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction", "explained_variance", "value_error")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes wrote: see rank_cases.py and rank_runs.py."""
    folder = tmp_path_factory.mktemp("ranks")
    for done in in_two_processes(main, folder):
        assert done.code == 0, done.err[-5000:]
    return folder


def in_two_processes(function: Callable[..., Any], *arguments: Any) -> list[Finished]:
    """Call a function in two processes that find each other as if torchrun had started them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    processes = [Process(as_rank, rank, port, function, *arguments) for rank in range(2)]
    return [process.wait() for process in processes]


def as_rank(rank: int, port: int, function: Callable[..., Any], *arguments: Any) -> None:
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_PORT": port}
    os.environ |= {name: str(number) for name, number in numbers.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "none"}
    function(*arguments)


@cache
def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(path, weights_only=False)
    return found


def flat(state: Any, path: str = "") -> dict[str, Any]:
    """All leaves of a checkpoint by path."""
    if isinstance(state, dict | list | tuple):
        entries = state.items() if isinstance(state, dict) else enumerate(state)
        return {name: leaf for key, part in entries for name, leaf in flat(part, f"{path}.{key}").items()}
    return {path: torch.as_tensor(state).tolist() if hasattr(state, "shape") else state}


@pytest.mark.parametrize("name", CASES)
def test_two_processes_learn_what_one_learns(results: Path, name: str) -> None:
    alone, first, second = (read(results / f"{name}.{who}.pt") for who in ("alone", "0", "1"))
    assert first["learner"].startswith("PyTorch") == name.endswith("torch")
    moved = (alone["after"] - alone["before"]).norm()
    assert moved > 0.1
    assert (first["after"] - alone["after"]).norm() < 1e-4 * moved
    assert torch.equal(first["after"], second["after"])
    for key, statistic in first["statistics"].items():
        assert torch.equal(statistic, second["statistics"][key]), key
        torch.testing.assert_close(statistic, alone["statistics"][key], rtol=1e-4, atol=1e-4)
    assert flat(first["scorer"]) == flat(second["scorer"])
    assert first["steps"] == second["steps"] == alone["steps"]
    assert first["recent"] == second["recent"]
    assert [length for _, length in first["recent"]] == [length for _, length in alone["recent"]]
    assert [reward for reward, _ in first["recent"]] == pytest.approx([reward for reward, _ in alone["recent"]], 1e-4)
    assert len(first["learned"]) == UPDATES
    for ours, others, theirs in zip(first["learned"], second["learned"], alone["learned"], strict=True):
        assert ours["epochs"] == others["epochs"] == theirs["epochs"]
        for key in LEARNED:
            assert ours[key] == pytest.approx(others[key], rel=0, abs=0, nan_ok=True), key
            assert ours[key] == pytest.approx(theirs[key], rel=1e-3, abs=1e-4, nan_ok=True), key
        for key, value in theirs["metrics"].items():
            assert ours["metrics"][key] == pytest.approx(value, rel=1e-3, abs=1e-4, nan_ok=True), key


def test_the_target_kl_ends_updates_early(results: Path) -> None:
    for name in ("target kl", "target kl torch"):
        assert min(learned["epochs"] for learned in read(results / f"{name}.0.pt")["learned"]) < 8


def test_runs_end_alike_in_all_processes(results: Path) -> None:
    first, second = (json.loads((results / f"ended.{rank}.json").read_text()) for rank in (0, 1))
    assert {name: first[name] for name in second} == second
    assert first["whole"] == first["asked"] == first["full disk"] == [0, True]
    assert first["stopped"] == [143, True]


def test_processes_that_differ_are_refused_before_anything_is_built(results: Path) -> None:
    first, second = (json.loads((results / f"refusals.{rank}.json").read_text()) for rank in (0, 1))
    assert first == second, "all processes say the same"
    assert "differ: ppo.gamma is 0.9 in process 0, 0.95 in process 1; start all of them with the same" in first["gamma"]
    assert "env.kwargs.g is 9.8 in process 0, 10.8 in process 1; train.seed is 0 in process 0, 1" in first["several"]
    assert "max_episode_steps" not in first["several"]
    assert "differ: contents of prices.csv is '" in first["file"]
    assert "differ: contents of ~/prices.csv is '" in first["home"]
    assert "differ: contents of prices is '" in first["no suffix"]
    assert "differ: contents of data is '" in first["folder"]
    assert first["same folder"] == ""
    assert "differ: contents of own_envs is '" in first["module"]
    assert "differ: contents of train.start_from is '" in first["model"]
    assert first["how"] == "", "threads and logs may differ"


@pytest.mark.cluster
def test_the_command_line_refuses_processes_that_differ(tmp_path: Path) -> None:
    script = tmp_path / "each"
    program = f"{sys.executable} -c 'import sys; from surefoot.cli.main import main; sys.exit(main())'"
    script.write_text(f"#!/bin/sh\n[ $RANK = 0 ] && exec {program} $1; exec {program} $2\n")
    script.chmod(0o755)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "config.yaml").write_text("env: {id: CartPole-v1}\n")
    train, resume = "train CartPole-v1 --run-dir run", "resume x"
    for commands in ((train, resume), (resume, train), (train, f"{train} --ppo.gae_lambda 0.9")):
        command = [*TORCHRUN, "--no-python", str(script), *commands]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert done.returncode != 0
        lines = {line for line in done.stderr.splitlines() if line.startswith("error: ")}
        assert len(lines) == 1, done.stderr
        assert "ppo.gae_lambda is" in lines.pop() if resume not in commands else "command is 'surefoot" in lines.pop()
    assert not (tmp_path / "run").exists()


def test_a_stopped_run_resumes_bit_for_bit(results: Path) -> None:
    whole, resumed = (read_checkpoint(checkpoint(results / run, 6)) for run in ("whole", "stopped"))
    assert len(whole["other_rows"]) == 1
    assert flat(whole) == flat(resumed)


def test_another_number_of_processes_resumes_with_new_episodes(results: Path) -> None:
    ended = json.loads((results / "ended.0.json").read_text())
    assert ended["alone"] == ended["from one"] == [0, False]
    assert "or processes" in (results / "from one" / "log.txt").read_text()


def test_hooks_of_any_process_save_and_stop_the_run(results: Path) -> None:
    saved = [path.name for path in sorted((results / "asked" / "checkpoints").iterdir())]
    assert saved == [checkpoint(results, iteration).name for iteration in (1, 3)]
    assert "stopped at step 360: enough" in (results / "asked" / "log.txt").read_text()


def test_a_full_disk_delays_the_checkpoint_of_all(results: Path) -> None:
    log = (results / "full disk" / "log.txt").read_text()
    assert "checkpoint at step 480 not saved" in log
    assert "checkpoint at step 600 saved after retrying" in log


def test_metrics_count_the_steps_of_all_processes_once(results: Path) -> None:
    rows = [json.loads(line) for line in (results / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [120, 240, 360, 480, 600, 720]
    assert sum("eval/mean_reward" in row for row in rows) == 3


@pytest.mark.parametrize(("count", "size", "lengths"), [(5, 2, [3, 2]), (4, 4, [1, 1, 1, 1]), (7, 3, [3, 2, 2])])
def test_rows_are_divided_in_order(count: int, size: int, lengths: list[int]) -> None:
    parts = [Ranks(rank, size).share(count) for rank in range(size)]
    assert [len(part) for part in parts] == lengths
    assert [row for part in parts for row in part] == list(range(count))


def test_the_cores_of_a_machine_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    cores = available_cores()
    for processes in (1, 2, 1000):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", str(processes))
        assert available_cores() == max(cores // processes, 1)


def test_envs_that_step_themselves_cannot_be_divided() -> None:
    with closing(gym.make_vec("CartPole-v1", 4)) as vector, pytest.raises(ConfigError, match="cannot be divided among"):
        make_vec_env(vector, EnvConfig(), 4, 0, share=range(2))
    with pytest.raises(ConfigError, match="cannot be divided among"):
        make_vec_env("envpool:CartPole-v1", EnvConfig(), 4, 0, share=range(2))


def test_more_processes_than_envs_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"rollout\.num_envs: 2 envs cannot be divided among 3 processes"):
        Ranks(0, 3).check_envs(2)


FAULTY = """
import os, signal
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv

class Faulty(CartPoleEnv):
    steps = 0

    def step(self, action):
        Faulty.steps += 1
        fault, _, rank = os.environ["FAULT"].partition(" ")
        if os.environ["RANK"] == (rank or "1") and Faulty.steps == 100:
            if fault == "raise":
                raise ValueError("the floor is wet")
            number = signal.SIGINT if fault == "interrupt" else signal.SIGKILL
            os.kill(os.getpid() if fault == "kill" else os.getppid(), number)
        return super().step(action)

gym.register("Faulty-v0", Faulty, max_episode_steps=50)
"""


def faulty_run(tmp_path: Path, fault: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A run with the installed program, in which process 1, or the one named, has a fault in the fourth iteration."""
    script = "import sys; from surefoot.cli.main import main; sys.exit(main())"
    program = tmp_path / "surefoot"  # as pip installs it
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    command = [*TORCHRUN, "--no-python", str(program), *faulty_train(tmp_path), *more]
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "FAULT": fault}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment)


def faulty_train(folder: Path) -> list[str]:
    (folder / "faulty.py").write_text(FAULTY)
    sizes = {"rollout.num-envs": 2, "rollout.num-steps": 32, "ppo.batch-size": 32, "train.eval-episodes": 0}
    settings = [text for name, value in sizes.items() for text in (f"--{name}", str(value))]
    return ["train", "faulty:Faulty-v0", "--run-dir", "run", *settings]


def raise_in_one(folder: Path, arguments: list[str]) -> None:
    from surefoot.cli.main import main

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ["FAULT"] = "raise"
    sys.exit(main(arguments))


def test_an_error_in_one_process_ends_all_and_saves(tmp_path: Path) -> None:
    first, second = in_two_processes(raise_in_one, tmp_path, faulty_train(tmp_path))
    assert "the floor is wet" in second.refused()
    assert first.refused().startswith("error: another process of this run failed or stopped: process 1: ")
    assert "the floor is wet" in first.err
    assert "saved at step 192; 'surefoot resume run' continues the run" in first.err
    assert (tmp_path / "run" / "checkpoints" / "step_000000000192.safetensors").exists()


@pytest.mark.cluster
@pytest.mark.parametrize(("fault", "message"), [("raise", "the floor is wet"), ("kill", "it does not answer")])
def test_a_fault_in_one_process_ends_all_and_saves(tmp_path: Path, fault: str, message: str) -> None:
    done = faulty_run(tmp_path, fault)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: another process")]
    assert len(lines) == 1, done.stderr
    assert message in lines[0]
    assert "saved at step 192; 'surefoot resume run' continues the run" in lines[0]
    assert (tmp_path / "run" / "checkpoints" / "step_000000000192.safetensors").exists()


@pytest.mark.cluster
def test_a_fault_in_the_first_process_ends_all_and_saves(tmp_path: Path) -> None:
    done = faulty_run(tmp_path, "raise 0")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: env 0")]
    assert "the floor is wet" in line
    assert "saved at step 192; 'surefoot resume run' continues the run" in line


@pytest.mark.cluster
def test_the_first_process_leaves_its_last_checkpoint_when_it_is_killed(tmp_path: Path) -> None:
    done = faulty_run(tmp_path, "kill 0", "--train.checkpoint-every", "64")
    assert done.returncode != 0
    assert "it does not answer" in done.stderr
    saved = sorted((tmp_path / "run" / "checkpoints").iterdir())
    assert int(saved[-1].stem.removeprefix("step_")) == 192
    read_checkpoint(saved[-1])


@pytest.mark.cluster
def test_ctrl_c_on_torchrun_saves_the_same_iteration_everywhere(tmp_path: Path) -> None:
    done = faulty_run(tmp_path, "interrupt")
    assert done.returncode != 0
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    step = int(newest.stem.removeprefix("step_"))
    assert 256 <= step < 100_000
    assert f"stopped at step {step}" in done.stdout
    assert len(read_checkpoint(newest)["other_rows"]) == 1


def test_a_killed_torchrun_ends_and_saves_the_run(tmp_path: Path) -> None:
    done = faulty_run(tmp_path, "torchrun")  # returns when all processes have closed their output
    assert done.returncode == -9
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    assert 256 <= int(newest.stem.removeprefix("step_")) < 100_000
    assert (
        f"saved a checkpoint at step {int(newest.stem.removeprefix('step_'))}"
        in (tmp_path / "run" / "log.txt").read_text()
    )
