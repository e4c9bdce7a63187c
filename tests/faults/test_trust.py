"""Checkpoints import nothing that their user has not named or imported: neither parts nor envs nor libraries."""

import copy
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surefoot import PPO
from surefoot.errors import CheckpointError, ClusterError
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import Finished, Process, surefoot
from tests.faults.test_checkpoint_contents import QUIET, TINY, change

pytestmark = pytest.mark.xdist_group("trust")

MODULE = """
from pathlib import Path
import gymnasium
from surefoot import Hook
from surefoot.policies.critics.scalar import ScalarCritic

Path(__file__).with_name("trace").touch()

class Trap(ScalarCritic):
    pass

class TrapHook(Hook):
    pass

if "Trap-v0" not in gymnasium.registry:
    gymnasium.register("Trap-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=20)
"""


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("trust") / "run"
    PPO("CartPole-v1", **TINY, **QUIET).learn(32, run_dir=run).close()
    return run


@pytest.fixture
def run(finished_run, tmp_path) -> Path:
    (tmp_path / "trap.py").write_text(MODULE)
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture
def model(run) -> Path:
    return RunDirectory(run).saved()[0]


def beside(folder: Path, *arguments: object) -> Finished:
    """`surefoot ARGUMENTS` in a folder."""
    return Process(_beside, folder, [str(argument) for argument in arguments]).wait()


def _beside(folder: Path, arguments: list[str]) -> None:
    from surefoot.cli.main import main

    os.chdir(folder)
    sys.exit(main(arguments))


PARTS = {
    "config/policy/critic": "trap:Trap",
    "config/policy/critic/kind": "trap:Trap",
    "config/hooks/it": {"kind": "trap:TrapHook"},
    "config/hooks/trap:TrapHook": {},
    "config/log/sinks/it": "trap:Trap",
    "config/rollout/engine": "trap:Trap",
    "config/policy/encoders/x": {"kind": "trap:Trap"},
    "config/policy.critic": "trap:Trap",
    "config/hooks.it": "trap:TrapHook",
}


@pytest.mark.parametrize("entry", PARTS)
def test_no_part_is_imported_because_a_checkpoint_names_it(model, tmp_path, monkeypatch, entry):
    monkeypatch.syspath_prepend(tmp_path)
    change(model, entry, PARTS[entry])
    with pytest.raises(CheckpointError) as caught:
        PPO.load(model)
    assert "wants to import 'trap:Trap" in str(caught.value)
    assert "pass --trust or trust=True" in str(caught.value)
    assert str(model) in str(caught.value)
    assert not (tmp_path / "trace").exists()
    assert "trap" not in sys.modules


def test_parts_are_imported_if_the_user_trusts_or_has_imported_them(model, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    change(model, "config/policy/critic", "trap:Trap")
    try:
        agent = PPO.load(model, trust={"trap:Trap"})
        assert type(agent.policy.critic).__module__ == "trap"
        PPO.load(model)  # nothing new would run
        del sys.modules["trap"]
        with pytest.raises(CheckpointError, match="wants to import"):
            PPO.load(model, trust={"other:Trap"})
        PPO.load(model, trust=True)
    finally:
        sys.modules.pop("trap", None)


def test_the_command_line_trusts_what_its_user_names(run, model, tmp_path):
    change(model, "config/policy/critic", "trap:Trap")
    for command in (["evaluate", model, "--episodes", 1], ["resume", run, "--steps", 64], ["evaluate", run]):
        assert "wants to import 'trap:Trap'" in beside(tmp_path, *command).refused()
        assert not (tmp_path / "trace").exists()
    beside(tmp_path, "evaluate", model, "--episodes", 1, "--trust").succeeded()
    assert (tmp_path / "trace").exists()
    (tmp_path / "trace").unlink()
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("kind: scalar", "kind: trap:Trap"))
    beside(tmp_path, "evaluate", run, "--episodes", 1).succeeded()
    beside(tmp_path, "resume", run, "--steps", 48).succeeded()
    assert (tmp_path / "trace").exists()


@pytest.mark.parametrize("env_id", ["trap:Trap-v0", "pettingzoo:trap", "./trap.so", "/tmp/trap.so:Trap-v0"])
def test_no_env_is_imported_or_loaded_because_a_checkpoint_names_it(model, tmp_path, monkeypatch, env_id):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    change(model, "config/env/id", env_id)
    agent = PPO.load(model)
    assert agent.predict([0.0] * 4)[0] in (0, 1), "acting needs no env"
    actions: list[Any] = [lambda: agent.evaluate(1), lambda: agent.learn(16), lambda: agent.export_onnx("x.onnx")]
    for action in actions:
        with pytest.raises(CheckpointError, match="wants to import") as caught:
            action()
        assert f"'{env_id}'" in str(caught.value)
        assert "trust=True" in str(caught.value)
    assert not (tmp_path / "trace").exists()
    assert PPO.load(model, "CartPole-v1").evaluate(1).rewards


def test_an_env_is_imported_if_the_user_names_or_trusts_it(run, model, tmp_path):
    change(model, "config/env/id", "trap:Trap-v0")
    for arguments in (["--trust"], ["--env", "trap:Trap-v0"]):
        beside(tmp_path, "evaluate", model, "--episodes", 1, *arguments).succeeded()
        assert (tmp_path / "trace").exists()
        (tmp_path / "trace").unlink()
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("id: CartPole-v1", "id: trap:Trap-v0"))
    beside(tmp_path, "evaluate", run, "--episodes", 1).succeeded()
    assert (tmp_path / "trace").exists()


def test_no_library_is_loaded_because_a_checkpoint_names_it(model, tmp_path):
    """The constructor of a real library would leave a trace."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "trap.c", tmp_path / "trap.so"
    source.write_text(
        f'#include <stdio.h>\n__attribute__((constructor)) void run(void) {{ fopen("{tmp_path}/trace", "w"); }}\n'
    )
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    change(model, "config/env/id", str(library))
    with pytest.raises(CheckpointError, match=r"wants to import '.*trap\.so'"):
        PPO.load(model).evaluate(1)
    assert not (tmp_path / "trace").exists()


def test_no_file_is_opened_because_a_checkpoint_names_it_as_an_argument(model):
    change(model, "config/env/kwargs", {"xml_file": "/etc/passwd"})
    with pytest.raises(CheckpointError, match="wants to import '/etc/passwd'"):
        PPO.load(model).evaluate(1)


def test_a_file_in_the_current_folder_is_a_path_too(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secrets").touch()
    change(model, "config/env/kwargs", {"prices": "secrets"})
    with pytest.raises(CheckpointError, match="wants to import 'secrets'"):
        PPO.load(model).evaluate(1)


def test_no_cluster_is_joined_because_a_checkpoint_names_it(run, model, monkeypatch):
    """A real listener sees whether anybody connects; `--env`, which trusts the env, does not trust the address."""
    monkeypatch.setattr("surefoot.machine.ray_cluster._ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        change(model, "config/rollout/engine", {"kind": "ray", "address": address})
        for env in (None, "CartPole-v1"):
            agent = PPO.load(model, env)
            assert agent.predict([0.0] * 4)[0] in (0, 1), "acting and evaluating need no cluster"
            agent.evaluate(1)
            with pytest.raises(CheckpointError, match=f"wants to connect to the Ray cluster at '{address}'"):
                agent.learn(64)
            with pytest.raises(CheckpointError, match="wants to connect"):
                copy.deepcopy(agent).learn(64)
        with pytest.raises(BlockingIOError):
            server.accept()
        for trust in (True, {address}):
            with pytest.raises(ClusterError, match=f"no Ray cluster answers at {address}"):
                PPO.load(model, trust=trust).learn(64)
            server.accept()[0].close()


def test_resume_joins_only_the_cluster_of_the_config(run, model):
    change(model, "config/rollout/engine", {"kind": "ray", "address": "127.0.0.1:1"})
    surefoot("resume", run, "--steps", 64).succeeded()
