"""Jobs on a real Ray: messages, deaths, kills, a lost node, and a directory that a node cannot see."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from surefoot.errors import ClusterError, SweepError
from surefoot.jobs.job import Job, JobDiedError
from surefoot.jobs.pool import Pool
from surefoot.jobs.ray import RayBackend
from surefoot.settings.layers import read_yaml
from surefoot.sweep.settings import read_settings
from surefoot.sweep.sweep import Sweep
from tests.sweep.sweeps import raw

pytestmark = pytest.mark.xdist_group("ray")


@pytest.fixture(scope="module")
def backend() -> Iterator[RayBackend]:
    """One Ray for all tests: others that are opened meanwhile use the same."""
    if not shutil.which("unshare") or os.getuid() != 0:
        pytest.skip("a node with a file system of its own needs root")
    found = RayBackend()
    yield found
    found.close()


def task(name: str, threads: int = 1, **arguments: object) -> Job:
    return Job(name, f"tests.jobs.tasks:{name.split()[0]}", arguments, threads)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"no Ray cluster answers at 127\.0\.0\.1:1 \(ConnectionRefusedError"),
        ("ray://127.0.0.1:10001", "'ray://127.0.0.1:10001' is not the address of a Ray cluster; pass HOST:PORT"),
    ],
)
def test_a_wrong_address_is_a_typed_error(address: str, message: str) -> None:
    with pytest.raises(ClusterError, match=message):
        RayBackend(address)


def test_without_ray_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"the package ray is missing; run `pip install .*\[ray\]"):
        RayBackend()


def test_without_optuna_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(SweepError, match=r"require Optuna; run `pip install .*\[sweep\]"):
        Sweep(*read_settings(raw({}), {}), tmp_path)


def test_messages_deaths_and_kills(backend: RayBackend, tmp_path: Path) -> None:
    assert list(backend.start(task("count", to=2))) == [
        *({"progress": {"number": number}} for number in (0, 1)),
        {"result": {"counted": 2}},
    ]
    assert list(backend.start(task("fail"))) == [{"error": "the environment is broken"}]
    with pytest.raises(JobDiedError, match="ended by signal 9"):
        list(backend.start(task("die")))
    stream = backend.start(task("wait", file=str(tmp_path / "never")))
    messages = iter(stream)
    pid = next(messages)["progress"]["pid"]
    stream.kill()
    with pytest.raises(JobDiedError, match="its Ray task was lost"):
        next(messages)
    wait_until_gone(pid)
    with pytest.raises(ClusterError, match="needs 1000 cores, but the largest node"):
        backend.start(task("count", threads=1000, to=1))


@contextmanager
def second_node(cores: int, hidden: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node with a file system of its own at one directory."""
    import ray

    known = len(ray.nodes())
    join = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--num-cpus={cores}"]
    join += [f"--address={ray.get_runtime_context().gcs_address}", f"--object-store-memory={80_000_000}"]
    script = f"mount -t tmpfs none {hidden} && exec {' '.join(join)}"
    node = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(ray.nodes()) == known:
            assert node.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield node
    finally:
        end(node)


def end(node: subprocess.Popen[bytes]) -> None:
    """With SIGKILL, as a machine that loses power."""
    if node.poll() is None:
        processes = [*psutil.Process(node.pid).children(recursive=True), psutil.Process(node.pid)]
        for process in processes:
            process.send_signal(signal.SIGKILL)
        node.wait()


def test_a_sweep_runs_on_ray_and_averages_its_seeds(backend: RayBackend, tmp_path: Path) -> None:
    settings = {"backend": "ray", "trials": 1, "seeds": 2}
    best = Sweep(*read_settings(raw(settings, train={"seed": 3}), {}), tmp_path).run()
    assert best.values["optimizer.lr"] == 3e-4  # the config's own value comes first
    scores = best.result["scores"]
    assert best.objective == sum(scores) / 2
    assert scores[0] != scores[1]
    configs = [read_yaml(tmp_path / "trials" / "0000" / f"seed-{index}" / "config.yaml") for index in (0, 1)]
    assert [config["train"]["seed"] for config in configs] == [3, 4]


@pytest.mark.cluster
def test_a_lost_node_and_a_directory_that_it_cannot_see(backend: RayBackend, tmp_path: Path) -> None:
    """One job fills the first node, so the other runs on the second, until that is lost."""
    hidden, release = tmp_path / "hidden", tmp_path / "release"
    hidden.mkdir()
    backend.check_directory(hidden)
    cores, deaths, results = backend.cores, [], {}
    with Pool(backend, slots=2, patience_s=60) as pool, ExitStack() as stack:
        pool.submit(task("wait here", threads=cores, file=str(release)))
        for event in pool.events():
            if event.job.name == "wait here" and event.progress:
                node = stack.enter_context(second_node(cores, hidden))
                backend.check_directory(tmp_path)
                with pytest.raises(ClusterError, match="hidden is not a directory that all nodes of the Ray cluster"):
                    backend.check_directory(hidden)
                assert list(hidden.iterdir()) == []
                pool.submit(task("wait there", threads=cores, file=str(release)))
            elif event.progress and not deaths:
                end(node)
            elif event.death:
                deaths.append(event.death)
                release.touch()
            elif event.is_last:
                results[event.job.name] = event.result
    assert len(deaths) == 1
    assert "its Ray task was lost" in deaths[0]
    assert set(results) == {"wait here", "wait there"}
