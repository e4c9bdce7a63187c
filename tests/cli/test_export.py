"""`surefoot export`: from a run to a file that acts without Surefoot."""

import json
import re
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
    model = tmp_path / "own.safetensors"
    message = surefoot("export", model, "--onnx", "own.onnx").refused()
    assert "an encoder or a policy was passed to PPO as an object" in message
    assert f"in Python: PPO.load('{model}', encoder=YOUR_ENCODER).export_onnx('own.onnx')" in message
    assert "weight" not in surefoot("evaluate", model).refused().replace("the weights of", "")


class Own(gym.Env):
    """Passed to PPO as an object, which no file contains."""

    observation_space, action_space = gym.spaces.Box(-1, 1, (2,)), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, True, {}


def test_runs_of_env_objects_name_the_python_that_continues_them(tmp_path):
    run = tmp_path / "run"
    PPO(Own, num_envs=2, num_steps=8, batch_size=16, eval_episodes=0).learn(16, run_dir=run)
    names = {"PPO": PPO, "YOUR_ENV": Own}
    for command in (("resume", run, "--steps", 48), ("evaluate", run, "--episodes", 2)):
        message = surefoot(*command).refused()
        advice = re.search(r"in Python: (PPO\.load\(.+?\)\.\w+\([^)]*\))", message)
        assert advice is not None, message
        result = eval(advice[1], names)
    assert len(result.rewards) == 2
    assert newest_step(run) == 48


def test_runs_of_wrapped_envs_are_not_continued_without_their_wrappers(tmp_path):
    run = tmp_path / "run"

    def wrapped():
        return gym.wrappers.TransformReward(gym.make("CartPole-v1"), lambda reward: 100 * reward)

    PPO(wrapped(), num_steps=16, batch_size=16, eval_episodes=0).learn(16, run_dir=run)
    for command in (("resume", run, "--steps", 48), ("evaluate", run, "--episodes", 2)):
        message = surefoot(*command).refused()
        assert "TransformReward(CartPole-v1) is an object with wrappers or arguments that no file contains" in message
        advice = re.search(r"in Python: (PPO\.load\(.+?\)\.\w+\([^)]*\))", message)
        assert advice is not None, message
        result = eval(advice[1], {"PPO": PPO, "YOUR_ENV": wrapped()})
    assert min(result.rewards) >= 100
    assert newest_step(run) == 48


def test_an_env_and_an_encoder_that_are_both_objects_are_both_named(tmp_path):
    run, encoder = tmp_path / "run", nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    PPO(Own, encoder=encoder, num_envs=2, num_steps=8, batch_size=16, eval_episodes=0).learn(16, run_dir=run)
    names = {"PPO": PPO, "YOUR_ENV": Own, "YOUR_ENCODER": encoder}
    for command in (("resume", run, "--steps", 48), ("evaluate", run, "--episodes", 2)):
        message = surefoot(*command).refused()
        advice = re.search(r"in Python: (PPO\.load\(.+?\)\.\w+\([^)]*\))", message)
        assert "env=YOUR_ENV, encoder=YOUR_ENCODER" in message
        eval(advice[1], names)
    assert newest_step(run) == 48


def test_a_start_from_a_model_with_a_python_encoder_is_explained(tmp_path):
    run, encoder = tmp_path / "run", nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    small = {"num_envs": 2, "num_steps": 8, "batch_size": 16, "eval_episodes": 0}
    PPO("CartPole-v1", encoder=encoder, **small).learn(16, run_dir=run)
    message = surefoot("train", "CartPole-v1", "--from", run, "--steps", 16, "--run-dir", tmp_path / "new").refused()
    assert "an encoder or a policy was passed to PPO as an object" in message
    assert "weight" not in message.replace("the weights of", "")
    advice = re.search(r"in Python: (PPO\(.+?\)\.\w+\([^)]*\))", message)
    assert eval(advice[1], {"PPO": PPO, "YOUR_ENCODER": encoder}).steps_trained >= 16


def newest_step(run):
    return max(int(file.stem.removeprefix("step_")) for file in (run / "checkpoints").iterdir())
