"""The script beside a model acts as the agent does, in a process that has neither torch nor Surefoot."""

import json
import subprocess
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.data.specs import ArraySpec
from surefoot.export.onnx_file import run_script
from tests.export.agents import Noise, agent

pytestmark = pytest.mark.xdist_group("export")

REPLAY = """
import json, sys
import numpy as np
import policy_run
record = np.load("record.npz")
keys = [key for key in record if key not in ("start", "mask")]
actions = [
    policy_run.act({key: record[key][step] for key in keys}, record["start"][step], record["mask"][step]).tolist()
    for step in range(len(record["start"]))
]
assert not {"torch", "surefoot", "gymnasium", "onnx"} & set(sys.modules)
print(json.dumps(actions))
"""

ONE = ArraySpec("discrete", (), "int64", sizes=(2,), start=(0,))


def test_two_episodes_of_a_policy_with_memory_and_masks(tmp_path):
    space = spaces.Dict({"gear": spaces.Discrete(4, start=2), "speed": spaces.Box(-3, 3, (2,))})
    env = partial(Noise, space, spaces.Discrete(6, start=1), 6)
    made = agent(env, policy={"memory": {"kind": "lstm", "hidden_size": 8}})
    made.export_onnx(tmp_path / "policy.onnx")
    record, actions = played(made, env(), episodes=2)
    np.savez(tmp_path / "record.npz", **record)
    command = [sys.executable, "-c", REPLAY]
    replayed = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert replayed == actions
    assert len(set(actions)) > 2, "an agent that always does the same would prove little"
    shown = subprocess.run([sys.executable, tmp_path / "policy_run.py"], capture_output=True, text=True, check=True)
    assert len(shown.stdout.splitlines()) == 5, "from any folder"


def played(made, env: gym.Env, episodes: int) -> tuple[dict[str, list], list[int]]:
    """What an env gave in some episodes, and what the agent did."""
    record: dict[str, list] = {"gear": [], "speed": [], "start": [], "mask": []}
    actions, state = [], None
    for episode in range(episodes):
        (obs, info), is_first, done = env.reset(seed=episode), True, False
        while not done:
            for key, value in {**obs, "start": is_first, "mask": info["action_mask"]}.items():
                record[key].append(value)
            action, state = made.predict(obs, state, is_first, action_mask=info["action_mask"])
            actions.append(int(action))
            obs, _, terminated, truncated, info = env.step(action)
            is_first, done = False, terminated or truncated
    return record, actions


def test_it_is_short():
    text = run_script("policy.onnx", "CartPole-v1", ["obs"], ArraySpec("box", (4,), "float32"), ONE)
    lines = [line for line in text.splitlines() if line]
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 120
    assert "state" not in text
    assert "episode_start" not in text


@pytest.mark.parametrize(
    ("spec", "example"),
    [
        (ArraySpec("box", (4,), "float32"), 'np.zeros((4,), "float32")'),
        (ArraySpec("discrete", (), "int64", sizes=(3,), start=(2,)), "2"),
        (ArraySpec("multi_discrete", (2,), "int64", sizes=(3, 3), start=(2, 0)), "[2, 0]"),
        (ArraySpec("multi_discrete", (1, 2), "int64", sizes=(3, 3), start=(2, 0)), "np.reshape([2, 0], (1, 2))"),
    ],
)
def test_it_shows_an_observation(spec, example):
    assert f"    obs = {example}  # an observation of the env\n" in run_script("a.onnx", "Env", ["obs"], spec, ONE)
    text = run_script("a.onnx", "Env", ['obs/a "b"'], {'a "b"': spec, "secret": spec}, ONE)
    compile(text, "script", "exec")
    assert f'    obs = {{"a \\"b\\"": {example}}}' in text
    assert "secret" not in text
