"""Fault 28: a log writer fails for real; training is unaffected, and there is one warning for each."""

import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from surefoot.api import PPO
from surefoot.data.records import IterationReport
from surefoot.errors import RunDirectoryError
from surefoot.telemetry.sinks import wandb as wandb_sink
from tests.cli.processes import Process
from tests.cli.runs import column, saved_steps

SETTINGS: dict[str, Any] = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "hidden": 4, "eval_episodes": 0}


def output_of(function: Any, run: Path) -> str:
    """What it printed; to a pipe, which has room where a file has none."""
    finished = Process(_with_pipe, function, run).wait().succeeded()
    shown: str = json.loads(finished.out)
    assert "Traceback" not in shown, shown
    assert "Logging error" not in shown, shown
    return shown


def _with_pipe(function: Any, run: Path) -> None:
    output = os.dup(1)
    read, write = os.pipe()
    os.dup2(write, 1)
    os.dup2(write, 2)
    function(run)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sys.stdout.flush()
    os.dup2(output, 1)
    print(json.dumps(os.read(read, 100_000).decode()))


def fill_the_disk(run: Path) -> None:
    class Fill:
        def after_iteration(self, report: IterationReport) -> None:
            if report.progress.iteration == 2:
                for process in (os.getpid(), *children()):
                    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    os.environ["WANDB_MODE"] = "offline"
    wandb_sink._FINISH_S = 1.0  # its service may wait for the disk forever; we do not
    agent = PPO("CartPole-v1", **SETTINGS, console="plain", wandb=True)
    with pytest.raises(RunDirectoryError, match="could not be saved"):
        agent.learn(160, run_dir=run, hooks=[Fill()])
    print("trained", agent._started().progress.step)


def children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def test_a_full_disk_costs_one_warning_a_sink(tmp_path):
    shown = output_of(fill_the_disk, tmp_path / "run")
    assert "trained 160" in shown
    for sink in ("JsonlSink", "TensorBoardSink"):
        assert shown.count(f"WARNING: {sink} failed and was disabled: [Errno 27] File too large") == 1
    assert shown.count("WARNING: ") - shown.count("WARNING: Wandb") == 3, "and one for the checkpoint"
    assert column(tmp_path / "run", "step") == [32]


def kill_the_service(run: Path) -> None:
    class Kill:
        def after_iteration(self, report: IterationReport) -> None:
            if report.progress.iteration == 2:
                for child in children():
                    if b"wandb-core" in Path(f"/proc/{child}/cmdline").read_bytes():
                        os.kill(child, signal.SIGKILL)
                        os.waitpid(child, 0)

    os.environ["WANDB_MODE"] = "offline"
    agent = PPO("CartPole-v1", **SETTINGS, console="plain", wandb=True)
    agent.learn(320, run_dir=run, hooks=[Kill()])


def test_without_its_service_wandb_is_switched_off_and_the_rest_goes_on(tmp_path):
    shown = output_of(kill_the_service, tmp_path / "run")
    assert shown.count("WARNING: WandbSink failed and was disabled") == 1
    assert shown.count("WARNING: ") == 1
    assert column(tmp_path / "run", "step") == list(range(32, 321, 32))
    assert saved_steps(tmp_path / "run") == [320]


class Stalled(BaseHTTPRequestHandler):
    """A W&B server that lets a run begin, and then takes its data and never answers."""

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        self.rfile.read(length)
        if not self.path.startswith("/graphql"):
            self.server.is_over.wait()
            return
        project = {"id": "p", "name": "surefoot", "entity": {"id": "e", "name": "me"}}
        bucket = {"id": "x", "name": "r", "displayName": "run", "config": "{}", "project": project}
        viewer = {"id": "v", "entity": "me", "username": "me", "flags": "{}", "teams": {"edges": []}}
        data = {"upsertBucket": {"bucket": bucket, "inserted": True}, "viewer": viewer, "createRunFiles": {"files": []}}
        answer = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *message: object) -> None:
        pass


@pytest.fixture
def stalled_server() -> Iterator[int]:
    """Its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stalled)
    server.is_over = threading.Event()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.is_over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def train_online(run: Path, port: int) -> None:
    os.environ.update(WANDB_MODE="online", WANDB_API_KEY="a" * 40, WANDB_BASE_URL=f"http://127.0.0.1:{port}")
    wandb_sink._FINISH_S = 1.0
    PPO("CartPole-v1", **SETTINGS, console="plain", wandb=True).learn(160, run_dir=run)


def test_a_server_that_stalls_does_not_keep_a_run_that_is_done(tmp_path, stalled_server):
    finished = Process(train_online, tmp_path / "run", stalled_server).wait().succeeded()
    kept = tmp_path / "run" / "wandb" / "run-"
    warning = f"WARNING: WandbSink failed to close: the upload did not finish within 1 s; run later: wandb sync {kept}"
    assert finished.err.startswith(warning)
    assert finished.err.count("\n") == 1
    assert saved_steps(tmp_path / "run") == [160]
