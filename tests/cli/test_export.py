"""`surefoot export`: from a run to a file that acts without Surefoot."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from torch import nn

from surefoot.api import PPO
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, train

pytestmark = pytest.mark.xdist_group("export")

ACT = "import json, sys, policy_run; print([int(policy_run.act(obs)) for obs in json.load(sys.stdin)])"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    run = tmp_path_factory.mktemp("export") / "run"
    train("CartPole-v1", run, *TINY, "--steps", 256, "--train.eval_episodes", 2)
    return run


def test_a_run_becomes_a_file_and_a_script_that_act_alike(run, tmp_path):
    model = tmp_path / "policy.onnx"
    lines = surefoot("export", run, "--onnx", model).succeeded().out.splitlines()
    assert lines[0] == f"policy    {run / 'best.safetensors'}"
    assert lines[1].startswith(f"model     {model}  (")
    assert lines[2].startswith("checked   ")
    assert " steps of CartPole-v1: within " in lines[2]
    assert lines[3] == f"script    {tmp_path / 'policy_run.py'}  (needs only numpy and onnxruntime)"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.onnx", "policy_run.py"]

    agent, env = PPO.load(run / "best.safetensors"), gym.make("CartPole-v1")
    (obs, _), seen, actions, done = env.reset(seed=3), [], [], False
    while not done:
        action, _ = agent.predict(obs)
        seen.append(obs.tolist())
        actions.append(int(action))
        obs, _, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
    command = [sys.executable, "-c", ACT]
    acted = subprocess.run(command, input=json.dumps(seen), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(acted.stdout) == actions


def test_what_cannot_be_exported(run, tmp_path):
    assert "ends with .onnx" in surefoot("export", run, "--onnx", tmp_path / "policy").refused()
    assert "is neither a run directory nor" in surefoot("export", tmp_path, "--onnx", tmp_path / "a.onnx").refused()
    message = surefoot("export", run, "--onnx", tmp_path / "a.onnx", "--tolerance", "-1").refused()  # nothing is
    assert "more than -1; nothing was written" in message
    other = surefoot("export", run, "--onnx", tmp_path / "a.onnx", "--env", "Pendulum-v1").refused()
    assert "observation or action space of this env differs" in other
    assert surefoot("export", run).code == 2
    assert not list(tmp_path.iterdir())


def test_modules_that_a_file_does_not_hold_have_to_be_given_from_python(tmp_path):
    encoder = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    PPO("CartPole-v1", encoder=encoder, num_envs=2, num_steps=8, batch_size=16).save(tmp_path / "own.safetensors")
    message = surefoot("export", tmp_path / "own.safetensors", "--onnx", tmp_path / "own.onnx").refused()
    assert "own.safetensors has custom modules; export it from Python: PPO.load(..., encoder=...)" in message
