"""Faults 1 and 4 to 9: checkpoints that were cut off, damaged, forged, foreign or made by somebody else."""

import hashlib
import json
import os
import pickle
import random
import shutil
import signal
import struct
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from surefoot.api import PPO
from surefoot.errors import CheckpointError, CheckpointMismatchError
from surefoot.storage.state import load_states, states
from surefoot.training import migrations
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Process, surefoot, with_little_memory
from tests.cli.runs import TINY, column, newest, saved_steps, train
from tests.training.states import assert_same

pytestmark = pytest.mark.xdist_group("checkpoint faults")


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    """Checkpoints at steps 32, 64 and 96."""
    run = tmp_path_factory.mktemp("checkpoint_faults") / "run"
    train("CartPole-v1", run, *TINY, "--steps", 96, "--train.checkpoint_every", 32)
    assert saved_steps(run) == [96, 64, 32]
    return run


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture
def model(run) -> Path:
    """A sound checkpoint."""
    return RunDirectory(run).saved()[0]


# Fault 1: SIGKILL at any moment of a save.


def state_of(step: int) -> dict[str, Any]:
    return {"step": step, "weights": torch.full((300_000,), float(step)), "text": str(step) * 100}


def save_forever(path: Path) -> None:
    with RunDirectory(path) as run:
        step = max([0, *saved_steps(path)])
        while True:
            step += 1
            run.save(step, state_of(step), keep=2)


def leftovers(run: Path) -> list[Path]:
    return [path for path in run.rglob("*") if path.name.endswith(".tmp")]


def test_a_kill_at_any_moment_of_a_save_leaves_good_checkpoints(tmp_path):
    pick = random.Random(1)
    killed_while_writing = 0
    for attempt in range(20):
        before = saved_steps(tmp_path)
        process = Process(save_forever, tmp_path)
        process.wait_until(lambda before=before: saved_steps(tmp_path)[:1] > before[:1])
        assert not [path for path in leftovers(tmp_path) if f".{process.pid}." not in path.name], "of the one before"
        if attempt % 2:
            process.wait_until(lambda: bool(leftovers(tmp_path)))
            time.sleep(pick.uniform(0, 0.003))
        else:
            time.sleep(pick.uniform(0, 0.03))
        process.send(signal.SIGKILL)
        assert process.wait().code == -signal.SIGKILL
        killed_while_writing += bool(leftovers(tmp_path))
        steps = saved_steps(tmp_path)
        assert steps[0] > max([0, *before])
        for path, step in zip(RunDirectory(tmp_path).saved(), steps, strict=True):
            assert_same(read_checkpoint(path), state_of(step))
    assert killed_while_writing >= 3
    with RunDirectory(tmp_path) as directory:
        assert leftovers(tmp_path) == []
        assert_same(directory.newest()[1], state_of(saved_steps(tmp_path)[0]))


# Fault 4: truncated.


def test_a_checkpoint_cut_off_anywhere_is_refused(model):
    whole = model.read_bytes()
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    pick = random.Random(2)
    lengths = [*range(10), header - 1, header, header + 1, len(whole) - 1, *pick.sample(range(len(whole)), 100)]
    for length in lengths:
        model.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=model.name):
            read_checkpoint(model)
    model.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="damaged"):
        read_checkpoint(model)
    model.write_bytes(whole)
    read_checkpoint(model)


def test_resume_falls_back_to_the_newest_sound_one_and_says_so(run, tmp_path):
    for path, length in zip(RunDirectory(run).saved(), (5000, 3), strict=False):
        os.truncate(path, length)
    resumed = surefoot("resume", run, "--steps", 128).succeeded()
    assert "from step_000000000032.safetensors (skipped 2 newer unreadable checkpoints, see log.txt)" in resumed.out
    log = (run / "log.txt").read_text()
    assert "step_000000000096.safetensors is damaged: it is truncated; trying the previous checkpoint" in log
    assert "step_000000000064.safetensors is not a Surefoot checkpoint" in log
    # As if nothing had happened: the same steps are done again.
    train("CartPole-v1", tmp_path / "whole", *TINY, "--steps", 128, "--train.checkpoint_every", 32)
    resumed_state, whole_state = newest(run), newest(tmp_path / "whole")
    assert_same(resumed_state, whole_state)


def test_a_damaged_newer_checkpoint_never_costs_a_good_one(run):
    """Saves after a fall-back are behind the damaged file, and are kept all the same."""
    newest_path = RunDirectory(run).saved()[0]
    newest_path.rename(newest_path.with_name("step_000000009999.safetensors"))
    os.truncate(newest_path.with_name("step_000000009999.safetensors"), 100)
    surefoot("resume", run, "--steps", 128, "--train.keep_checkpoints", 1).succeeded()
    assert saved_steps(run) == [128]
    assert newest(run)["progress"]["step"] == 128


def test_resume_without_a_sound_checkpoint_never_starts_from_scratch(run):
    for path in RunDirectory(run).saved():
        os.truncate(path, 1000)
    before = column(run, "step")
    message = surefoot("resume", run, "--steps", 128).refused()
    assert "checkpoints is readable" in message
    for path in RunDirectory(run).saved():
        path.unlink()
    message = surefoot("resume", run, "--steps", 128).refused()
    assert "has no checkpoint to resume from" in message
    assert column(run, "step") == before
    assert saved_steps(run) == []


# Fault 5: flipped bytes.


def test_a_flipped_byte_is_noticed_wherever_it_is(model):
    whole, sound = model.read_bytes(), read_checkpoint(model)
    header = 8 + struct.unpack("<Q", whole[:8])[0]
    pick = random.Random(3)
    positions = [*range(8), *pick.sample(range(8, header), 400), *pick.sample(range(header, len(whole)), 100)]
    refused = 0
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= pick.randrange(1, 256)
        model.write_bytes(damaged)
        try:
            state = read_checkpoint(model)
        except CheckpointError:
            refused += 1
        else:
            assert_same(state, sound)  # a blank that became a line break
    assert refused > 0.98 * len(positions)


def test_a_flipped_byte_of_the_weights_is_a_checksum_error(run):
    path = RunDirectory(run).saved()[0]
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match="its checksum does not match"):
        read_checkpoint(path)
    assert "its checksum does not match" in surefoot("evaluate", path).refused()
    assert (
        "from step_000000000064.safetensors (skipped 1 newer" in surefoot("resume", run, "--steps", 128).succeeded().out
    )


# Fault 6: pickles and archives.


class Payload:
    """What creates a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.trace,))


def _write_pickle(path: Path, payload: Payload) -> None:
    path.write_bytes(pickle.dumps({"policy": payload}))


def _write_torch(path: Path, payload: Payload) -> None:
    torch.save({"policy": payload}, path)


def _write_old_torch(path: Path, payload: Payload) -> None:
    torch.save({"policy": payload}, path, _use_new_zipfile_serialization=False)


def _write_zip(path: Path, payload: Payload) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(payload))


def _write_numpy(path: Path, payload: Payload) -> None:
    with path.open("wb") as file:
        np.save(file, np.array([payload], dtype=object), allow_pickle=True)


@pytest.mark.parametrize("write", [_write_pickle, _write_torch, _write_old_torch, _write_zip, _write_numpy])
def test_a_pickle_or_an_archive_is_refused_and_nothing_runs(run, tmp_path, write):
    trace = tmp_path / "trace"
    payload = Payload(trace)
    pickle.loads(pickle.dumps(payload))
    assert trace.exists(), "the payload works"
    trace.unlink()
    for path in RunDirectory(run).saved():
        write(path, payload)
    with pytest.raises(CheckpointError, match="is not a Surefoot checkpoint"):
        PPO.load(RunDirectory(run).saved()[0])
    assert "is not a Surefoot checkpoint" in surefoot("evaluate", RunDirectory(run).saved()[0]).refused()
    assert "checkpoints is readable" in surefoot("resume", run, "--steps", 128).refused()
    assert not trace.exists()


def test_a_model_that_asks_for_an_import_is_refused_unless_trusted(model, tmp_path):
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'trace')!r}, 'w')\n")
    state = read_checkpoint(model)
    state["config"]["env"]["id"] = "trap:CartPole-v1"
    write_checkpoint(model, state)
    process = Process(_evaluate_beside, tmp_path, model)
    message = process.wait().refused()
    assert "wants to import 'trap:CartPole-v1'; if you trust it, pass --env trap:CartPole-v1" in message
    assert not (tmp_path / "trace").exists()
    Process(_evaluate_beside, tmp_path, model, "--env", "trap:CartPole-v1").wait().succeeded()
    assert (tmp_path / "trace").exists()


def _evaluate_beside(folder: Path, *arguments: object) -> None:
    import sys

    from surefoot.cli.main import main

    sys.path.insert(0, str(folder))
    sys.exit(main(["evaluate", *(str(argument) for argument in arguments), "--episodes", "1"]))


# Fault 7: giant headers, links, tricks.


def forge(path: Path, header: bytes, data: bytes = b"", length: int | None = None) -> Path:
    path.write_bytes(struct.pack("<Q", len(header) if length is None else length) + header + data)
    return path


def metadata(state: str, /, **changes: Any) -> bytes:
    """A header whose checksum is right: it is no signature, anybody can make one."""
    checksum = hashlib.sha256(state.encode()).hexdigest()
    return json.dumps(
        {"__metadata__": {"format": "surefoot", "version": "1", "state": state, "checksum": checksum} | changes}
    ).encode()


def test_the_forger_can_forge(tmp_path):
    assert read_checkpoint(forge(tmp_path / "forged", metadata('{"a": [1, 2]}'))) == {"a": [1, 2]}


@pytest.mark.parametrize("length", [0, 1, 2**24 + 1, 100 * 2**20, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_header_of_any_size_is_refused_unread(tmp_path, length):
    path = forge(tmp_path / "forged", metadata("{}"), length=length)
    os.truncate(path, 8 + min(length, 2**40))  # sparse: it takes no space
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="is not a Surefoot checkpoint"):
            read_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_tensor_larger_than_memory_is_refused(tmp_path):
    size = 2**40
    header = json.loads(metadata("{}")) | {"big": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    path = forge(tmp_path / "forged", json.dumps(header).encode())
    with path.open("ab") as file:
        file.truncate(path.stat().st_size + size)
    Process(with_little_memory, 200, _is_refused, path).wait().succeeded()


def test_a_tensor_that_the_file_does_not_hold_is_refused(tmp_path):
    header = json.loads(metadata("{}")) | {"big": {"dtype": "U8", "shape": [2**40], "data_offsets": [0, 2**40]}}
    _is_refused(forge(tmp_path / "forged", json.dumps(header).encode(), b"little"))


def _is_refused(path: Path) -> None:
    with pytest.raises(CheckpointError):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b"null",
        b"not JSON",
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"__metadata__": []}',
        b'{"__metadata__": {"format": "pt"}}',
        metadata("{}", version="newest"),
        metadata("{}", version="²"),
        metadata("{}", version="9" * 5000),
        metadata("{}", version="-1"),
        metadata("{}", version=""),
        metadata("{}", version=None),
        metadata("{}", checksum="0" * 64),
        metadata("{}", checksum=None),
        metadata("{}", state=None),
        metadata("not JSON"),
        metadata("[]x"),
        metadata("[1, 2]"),
        metadata("7"),
        metadata("[" * 20_000 + "]" * 20_000),
        metadata('{"a":' * 20_000 + "1" + "}" * 20_000),
        metadata('{"weights": {"__tensor__": "missing"}}'),
        metadata('{"weights": {"__tensor__": ["a"]}}'),
        metadata('{"weights": {"__array__": null}}'),
        json.dumps({**json.loads(metadata("{}")), "a": {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]}}).encode(),
        json.dumps(
            {**json.loads(metadata("{}")), "a": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 1]}}
        ).encode(),
        json.dumps(
            {**json.loads(metadata("{}")), "a": {"dtype": "U8", "shape": [-1], "data_offsets": [1, 0]}}
        ).encode(),
    ],
    ids=range(30),
)
def test_forged_headers_are_refused(tmp_path, header):
    path = forge(tmp_path / "forged.safetensors", header, b"x")
    for data in (b"", b"x"):
        with pytest.raises(CheckpointError, match=r"forged\.safetensors"):
            read_checkpoint(forge(path, header, data))


def test_only_regular_files_are_opened(model, tmp_path):
    link, fifo = tmp_path / "link.safetensors", tmp_path / "fifo.safetensors"
    link.symlink_to(model)
    os.mkfifo(fifo)  # opening it would wait for ever
    for path in (link, fifo, tmp_path, Path("/dev/zero"), Path("/dev/stdin")):
        with pytest.raises(CheckpointError, match="is not a regular file"):
            read_checkpoint(path)
    assert "links are not followed" in surefoot("evaluate", link).refused()
    with pytest.raises(CheckpointError, match="does not exist"):
        read_checkpoint(tmp_path / "nowhere" / "model.safetensors")


def test_a_link_among_the_checkpoints_is_passed_over(run, tmp_path):
    newest_path = RunDirectory(run).saved()[0]
    newest_path.rename(tmp_path / "elsewhere")
    newest_path.symlink_to(tmp_path / "elsewhere")
    assert "from step_000000000064" in surefoot("resume", run, "--steps", 128).succeeded().out


def test_names_that_look_like_paths_are_only_names(model, tmp_path):
    state = read_checkpoint(model)
    weights = state["policy"].pop("critic.head.bias")
    before = sorted(tmp_path.rglob("*"))
    for name in ("../../escaped", "/tmp/escaped", "~/escaped", "a\0b", "con\\..\\..\\escaped"):
        write_checkpoint(model, state | {"policy": {**state["policy"], name: weights}})
        with pytest.raises(CheckpointMismatchError, match="unknown") as caught:
            PPO.load(model)
        assert f"{name} is unknown" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(3)}, path, {"format": "pt"})
    assert "is not a Surefoot checkpoint" in surefoot("evaluate", path).refused()


@pytest.mark.parametrize("missing", ["config", "obs_spec", "action_spec", "policy"])
def test_a_checkpoint_without_a_policy_in_it_is_refused(model, missing):
    state = read_checkpoint(model)
    del state[missing]
    write_checkpoint(model, state)
    with pytest.raises(CheckpointError, match=f"is not a policy checkpoint: it has no {missing}"):
        PPO.load(model)


# Fault 8: another shape.


def agent(**settings: Any) -> PPO:
    return PPO("CartPole-v1", num_envs=2, num_steps=16, batch_size=16, eval_episodes=0, **settings)


@pytest.fixture
def trained():
    with_moments = agent(hidden=5, normalize={"obs": True, "returns": True}, seed=1).learn(64)
    yield with_moments
    with_moments.close()


def assert_unchanged_by(trained: PPO, state: dict[str, Any], expected: list[str]) -> None:
    trainer = trained._started()
    before = pickle.loads(pickle.dumps(states(trainer.stateful())))
    with pytest.raises(CheckpointMismatchError) as caught:
        load_states(trainer.stateful(), state)
    for difference in expected:
        assert difference in str(caught.value)
    assert_same(states(trainer.stateful()), before)


def test_another_network_is_listed_and_nothing_is_touched(trained):
    other = agent(hidden=[7, 4], seed=2).learn(32)
    state = states(other._started().stateful())
    assert_unchanged_by(
        trained,
        state,
        [
            *("preprocess.normalizers.obs.count is missing", "preprocess.normalizers.obs.mean is missing"),
            "critic.returns.var is missing",
            *("actor_body.trunk.layers.1.weight is unknown", "critic_body.trunk.layers.1.bias is unknown"),
            "actor_body.trunk.layers.0.weight has shape (7, 4), not (5, 4)",
            "head.logits.weight has shape (2, 4), not (2, 5)",
        ],
    )


def test_another_optimizer_is_listed_and_nothing_is_touched(trained):
    other = agent(hidden=5, normalize={"obs": True, "returns": True}, seed=2).learn(32)
    state = states(other._started().stateful())
    moments = state["gradient"]["adam"]["exp_avg_sq"]
    moments["critic.head.bias"] = torch.zeros(3)
    del moments["head.logits.weight"]
    assert_unchanged_by(trained, state, ["critic.head.bias", "head.logits.weight"])


def test_a_model_does_not_fit_an_own_policy_of_another_shape(model):
    other = agent(hidden=9).policy
    before = {name: value.clone() for name, value in other.state_dict().items()}
    with pytest.raises(CheckpointMismatchError, match=r"head\.logits\.weight has shape \(2, 4\), not \(2, 9\)"):
        PPO.load(model, policy=other)
    assert_same(dict(other.state_dict()), before)


# Fault 9: other format versions.


def test_a_newer_version_is_refused(run, monkeypatch):
    monkeypatch.setattr("surefoot.training.checkpoint.FORMAT_VERSION", migrations.FORMAT_VERSION + 1)
    path = RunDirectory(run).saved()[0]
    write_checkpoint(path, read_checkpoint(RunDirectory(run).saved()[1]))
    monkeypatch.undo()
    message = surefoot("evaluate", path).refused()
    assert f"has format version {migrations.FORMAT_VERSION + 1}, but this Surefoot reads up to" in message
    assert "upgrade Surefoot" in message


def test_a_version_too_old_to_migrate_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="version 0 is no longer supported"):
        read_checkpoint(forge(tmp_path / "old", metadata("{}", version="0")))


def test_old_versions_are_migrated_step_by_step(tmp_path, monkeypatch):
    path = forge(tmp_path / "old", metadata('{"lr": 0.1}', version="0"))
    now = migrations.FORMAT_VERSION
    monkeypatch.setattr(migrations, "FORMAT_VERSION", now + 1)
    monkeypatch.setattr("surefoot.training.checkpoint.FORMAT_VERSION", now + 1)
    steps = {0: lambda state: {"learning_rate": state["lr"]}, now: lambda state: {"rates": [state["learning_rate"]]}}
    for version in range(now + 1):
        monkeypatch.setitem(migrations.MIGRATIONS, version, steps.get(version, lambda state: state))
    assert read_checkpoint(path) == {"rates": [0.1]}
