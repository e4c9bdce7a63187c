"""`surefoot bench`: small real measurements, as people start them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.peers import PEERS
from benchmarks.sides import missing_packages
from benchmarks.tasks import TASKS, Task
from surefoot.benchmark import subject_process
from surefoot.benchmark.process_tree import members
from surefoot.cli.main import main
from tests.cli.processes import Finished, Process
from tests.jobs import forked

pytestmark = pytest.mark.xdist_group("bench")
TINY = (
    *("--rollout.num_envs", 2, "--rollout.num_steps", 16, "--ppo.batch_size", 16, "--ppo.epochs", 2),
    *("--policy.hidden", 4, "--rollout.workers", 2),
)
SHORT = ("--seconds", 0.05, "--repeats", 2)


def surefoot(*arguments: object) -> Finished:
    """With forked subjects: those of tests/benchmark/test_subject_process.py are started as users' are."""
    return forked.start(*arguments).wait()


def measured(*arguments: object) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(surefoot("bench", *arguments, "--json").succeeded().out)
    return record


def test_train() -> None:
    record = measured("train", "CartPole-v1", *TINY, "--iterations", 3, "--repeats", 2, "--rollout.engine", "processes")
    subject = record["subjects"][0]
    assert [window["iterations"] for window in subject["windows"]] == [3, 3]
    assert [window["steps"] for window in subject["windows"]] == [3 * 32, 3 * 32]
    for rate in ("steps_per_s", "rollout_steps_per_s", "rollout_ms", "learn_ms"):
        assert 0 < subject[rate]["low"] <= subject[rate]["median"] <= subject[rate]["high"]
    assert subject["peak_memory_bytes"] > 50 * 10**6
    assert record["config"]["rollout"]["engine"]["kind"] == "processes"
    assert "--iterations 3" in record["command"]


def test_learn(tmp_path: Path) -> None:
    sizes = ("--batch", 64, "--network", "64-64", "--repeats", 2, "--seconds", 0.01, "--threads", 1)
    finished = surefoot("bench", "learn", *sizes, "--output", tmp_path)
    assert "share of limit" in " ".join(finished.succeeded().out.split())
    record = json.loads((tmp_path / "learn.json").read_text())
    cell = record["cells"][0]
    assert (cell["network"], cell["batch"]) == ("64-64", 64)
    reference = cell["learners"]["torch"]
    assert reference["ms"]["low"] == min(reference["repeats"])
    shares = [limit / own for limit, own in zip(cell["limit_ms"]["repeats"], reference["repeats"], strict=True)]
    assert reference["share"]["high"] == pytest.approx(max(shares))
    assert "64-64, ms per minibatch" in (tmp_path / "learn.md").read_text()


def test_rollout_takes_turns_and_writes_files(tmp_path: Path) -> None:
    finished = surefoot("bench", "rollout", *TINY, *SHORT, "--only-python", "--output", tmp_path)
    assert "times local" in finished.succeeded().out
    assert "processes" in (tmp_path / "rollout.md").read_text()
    record = json.loads((tmp_path / "rollout.json").read_text())
    assert record["order"] == ["local", "processes", "local", "processes"]
    assert record["thread_ratios"] == []
    local, processes = record["subjects"]
    assert local["ratio_to_local"] is None
    pairs = zip(processes["windows"], local["windows"], strict=True)
    rates = [
        (ours["steps"] / ours["rollout_s"]) / (reference["steps"] / reference["rollout_s"]) for ours, reference in pairs
    ]
    assert processes["ratio_to_local"]["low"] == pytest.approx(min(rates))
    assert processes["ratio_to_local"]["high"] == pytest.approx(max(rates))
    assert all(window["learn_s"] == 0 for window in local["windows"])


def test_steps_count_as_executed_and_an_engine_that_cannot_says_why() -> None:
    """EnvPool's resets take steps of their own; it steps itself, so that only one engine can run it."""
    pytest.importorskip("envpool")
    record = measured("rollout", "envpool:CartPole-v1", *TINY, "--iterations", 4, "--repeats", 2)
    local, processes, native = record["subjects"]
    assert all(0 < window["steps"] < 4 * 32 for window in local["windows"])
    for other in (processes, native):
        assert "must be 'auto' or 'local'" in other["error"]
        assert other["ratio_to_local"] is other["ratio_to_limit"] is None
    assert record["order"] == ["local", "local"]


def test_the_native_engine_and_its_limit() -> None:
    """The fraction is of windows that were measured one after the other; more threads are compared with fewer."""
    record = measured("rollout", "InvertedPendulum-v5", *TINY, *SHORT, "--only-native", "--threads-list", 1, 2)
    names = ["native", "limit", "native, 1 thread", "native, 2 threads"]
    assert [subject["name"] for subject in record["subjects"]] == names
    assert record["order"] == names * 2
    native, limit, *_ = record["subjects"]
    fractions = [
        (ours["steps"] / ours["rollout_s"]) / (bare["steps"] / bare["rollout_s"])
        for ours, bare in zip(native["windows"], limit["windows"], strict=True)
    ]
    assert native["ratio_to_limit"]["low"] == pytest.approx(min(fractions))
    assert native["ratio_to_limit"]["median"] == pytest.approx(sum(fractions) / 2)
    assert min(fractions) > 0
    assert (limit["ratio_to_limit"], native["ratio_to_local"]) == (None, None)
    assert native["engine"] == "native"
    (threads,) = record["thread_ratios"]
    assert (threads["from"], threads["to"]) == ("native, 1 thread", "native, 2 threads")
    assert threads["median"] > 0


def test_an_env_that_the_core_does_not_know(tmp_path: Path) -> None:
    """What `auto` takes comes first; the native row says why it is empty, and there is no limit."""
    file = tmp_path / "rollout.json"
    module = "benchmarks.masked_choice:MaskedChoice-v0"
    engines = ("--engines", "native", "local", "--json", file)
    shown = surefoot("bench", "rollout", module, *TINY, *SHORT, *engines).succeeded().out
    assert "has no native implementation" in " ".join(shown.split())
    record = json.loads(file.read_text())
    assert [subject["name"] for subject in record["subjects"]] == ["local", "native"]
    assert record["order"] == ["local", "local"]


def test_scaling_of_the_rollout_alone() -> None:
    record = measured("scaling", *TINY, *SHORT, "--num-envs-list", 2, 6, "--warmup", 1, "--only-rollout")
    first, second = record["points"]
    assert first["engine"] == second["engine"] == "native"
    assert all(window["learn_s"] == 0 for point in (first, second) for window in point["windows"])
    costs = [
        (after["rollout_s"] / after["steps"]) / (before["rollout_s"] / before["steps"])
        for after, before in zip(second["windows"], first["windows"], strict=True)
    ]
    assert second["step_cost"]["median"] == pytest.approx(sum(costs) / 2)
    assert record["step_cost_deviation"]["native"] == pytest.approx(sum(costs) / 2 - 1)
    assert any("deviates most from that with 2 envs at 6" in note for note in record["notes"])


def test_stepping(tmp_path: Path) -> None:
    """Random actions end episodes: EnvPool's steps that only reset do not count."""
    file = tmp_path / "stepping.json"
    arguments = ("--num-envs", 4, "--num-steps", 64, "--iterations", 2, "--repeats", 2, "--json", file)
    shown = surefoot("bench", "stepping", "CartPole-v1", *arguments).succeeded().out
    assert "Gymnasium SyncVectorEnv" in shown
    record = json.loads(file.read_text())
    subjects = {subject["name"]: subject for subject in record["subjects"]}
    assert list(subjects)[:2] == ["native", "native-core"]
    assert set(subjects) | set(record["absent"]) == {"native", "native-core", "envpool", "gymnasium"}
    for name in ("native", "native-core", "gymnasium"):
        assert [window["steps"] for window in subjects[name]["windows"]] == [512, 512]
    if "envpool" in subjects:
        assert all(0 < window["steps"] < 512 for window in subjects["envpool"]["windows"])
    assert subjects["gymnasium"]["native_over_it"]["median"] > 0


def test_scaling(tmp_path: Path) -> None:
    file = tmp_path / "scaling.json"
    sizes = ("--num-envs-list", 2, 6, "--warmup", 1)
    shown = surefoot("bench", "scaling", *TINY, *SHORT, *sizes, "--json", file).succeeded().out
    assert "Recommended: " in shown
    record = json.loads(file.read_text())
    first, second = record["points"]
    assert (first["num_envs"], first["batch_size"], first["speedup"]["median"]) == (2, 16, 1.0)
    assert (second["num_envs"], second["batch_size"]) == (6, 48)
    assert first["rollout_efficiency"] == 1.0
    ratios = [
        (after["steps"] / after["rollout_s"]) / (before["steps"] / before["rollout_s"])
        for after, before in zip(second["windows"], first["windows"], strict=True)
    ]
    assert second["rollout_efficiency"] == pytest.approx(sum(ratios) / 2 / 3)
    assert record["recommended"]["num_envs"] in (2, 6)
    assert record["order"] == ["2 envs, auto", "6 envs, auto"] * 2
    assert record["points"][0]["engine"] == "native"


def test_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All that can do the task, and one whose package is missing; none of their processes is left."""
    monkeypatch.setattr(subject_process, "subprocess", forked)
    Process(print).wait()  # the server that forks stays
    before = members(os.getpid())
    installed = [name for name in ("envpool", "sb3", "sb3-subproc") if not missing_packages(PEERS[name])]
    monkeypatch.setitem(TASKS, "tiny", Task("tiny", "CartPole-v1", 2, 60, 1, 2, (4,)))
    monkeypatch.setattr(PEERS["sb3-contrib"], "needs", ("no_such_package",))
    peers = ["--peers", "envpool", "sb3", "sb3-subproc", "sb3-contrib"]
    arguments = ["--tasks", "tiny", *peers, "--seconds", "0.05", "--repeats", "2", "--output", str(tmp_path)]
    assert main(["bench", "peers", *arguments]) == 0
    record = json.loads((tmp_path / "peers.json").read_text())
    task = record["tasks"][0]
    ours = ["native", "local", "processes"]
    assert task["order"] == [*ours, *installed] * 2
    assert [(ratio["ours"], ratio["theirs"]) for ratio in task["ratios"]] == [
        (mine, theirs) for mine in ours for theirs in installed
    ]
    assert record["failed"] == []
    subjects = {subject["name"]: subject for subject in task["subjects"]}
    assert all(window["steps"] == 120 * window["iterations"] for window in subjects["local"]["windows"])
    if "envpool" in installed:  # its resets take steps of their own, which are not counted
        assert all(window["steps"] < 120 * window["iterations"] for window in subjects["envpool"]["windows"])
    if "sb3-subproc" in installed:  # two processes more, each with torch
        assert subjects["sb3-subproc"]["peak_memory_bytes"] > 1.3 * subjects["sb3"]["peak_memory_bytes"]
    assert set(members(os.getpid())) <= set(before)
    shown = capsys.readouterr()
    assert "sb3-contrib left out: no_such_package is not installed" in shown.err
    assert "Surefoot processes" in shown.out
    assert "native over it" in (tmp_path / "peers.md").read_text()  # a narrow terminal breaks the line


def test_a_side_that_fails_is_the_exit_code(tmp_path, monkeypatch, capsys) -> None:
    """After everything was written: what the others did is not lost."""
    monkeypatch.setattr(subject_process, "subprocess", forked)
    monkeypatch.setitem(TASKS, "fatal", Task("fatal", "tests.benchmark.odd_envs:Fatal-v0", 2, 16, 1, 2, (4,)))
    arguments = ["--tasks", "fatal", "--engines", "local", "--peers", "envpool", "--output", str(tmp_path)]
    assert main(["bench", "peers", *arguments, "--seconds", "0.05", "--repeats", "1"]) == 1
    assert json.loads((tmp_path / "peers.json").read_text())["failed"] == ["fatal: local"]
    assert "failed: fatal: local" in capsys.readouterr().err


def test_an_env_that_takes_its_process_down_is_one_error() -> None:
    finished = surefoot("bench", "train", "tests.benchmark.odd_envs:Fatal-v0", *TINY, *SHORT)
    assert finished.code == 2
    assert "error: tests.benchmark.odd_envs:Fatal-v0, auto: its process exited with code 7" in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["trian"], "unknown benchmark 'trian'; did you mean 'train'?"),
        (["train", "--repeats", "0"], "--repeats: must be greater than 0"),
        (["train", "CartPole-v9"], "neither a preset nor a registered Gymnasium id"),
        (["rollout", "--engines", "locl"], "unknown engine 'locl'; did you mean 'local'?"),
        (["scaling", "--num-envs-list", "0", "4"], "--num-envs-list: must be numbers of at least 1"),
        (["rollout", "--only-native", "--only-python"], "--only-native and --only-python are mutually exclusive"),
        (["rollout", "--engines", "local", "--only-native"], "--engines and --only-native are mutually exclusive"),
        (["rollout", "--only-python", "--threads-list", "1"], "--threads-list: applies only to the native engine"),
        (["rollout", "--threads-list", "0"], "--threads-list: must be numbers of at least 1"),
        (["learn", "--batch", "65"], "--batch: must be a multiple of 32"),
        (["learn", "--network", "65-65"], "--network: unknown '65-65'; choose from 64-64, 256-256, 3x512, gru-256"),
        (["learn", "--ppo.gamma", "0.9"], "bench learn does not accept settings"),
        (["stepping", "--num-envs", "0"], "--num-envs: must be at least 1"),
        (["stepping", "--sides", "gym"], "--sides: there is no 'gym'"),
        (["stepping", "--rollout.num_envs", "4"], "bench stepping does not accept settings"),
        (["peers", "--ppo.gamma", "0.9"], "bench peers does not accept settings"),
        (["peers", "--threads", "-1"], "--threads: must be 0 or more"),
    ],
)
def test_refusals(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    assert main(["bench", "--help"]) == 0
    assert capsys.readouterr().out.count("scaling") == 2


@pytest.mark.parametrize("option", ["--output", "--json"])
def test_a_place_that_cannot_be_written_to_is_refused_before_measuring(option, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "there"
    assert main(["bench", "train", "CartPole-v1", option, str(place)]) == 2
    shown = capsys.readouterr()
    assert f"{option}: " in shown.err
    assert "starting" not in shown.out + shown.err
