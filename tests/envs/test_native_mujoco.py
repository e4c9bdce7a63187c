"""MuJoCo inside the core: what it warns of litters nothing, and what it gives up on is an error, not the end."""

import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import surefoot
from surefoot.envs import native
from surefoot.errors import EnvError, NonFiniteError

HOPPER = Path(gym.__file__).parent / "envs" / "mujoco" / "assets" / "hopper.xml"
GAVE_UP = r"^env \d: MuJoCo gave up: .*increase <size memory=[^\n]*$"


@pytest.fixture
def crowded(tmp_path):
    """A model whose memory lasts until the hopper lands."""
    file = tmp_path / "crowded.xml"
    file.write_text(re.sub(r"(<mujoco[^>]*>)", r'\1<size memory="3000"/>', HOPPER.read_text(), count=1))
    return str(file)


def fall(envs):
    for _ in range(200):
        envs.step(np.ones(envs.action_space.shape, np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_mujoco_is_one_of_ours_and_a_reset_mends_it(crowded, threads):
    envs = native.make("Hopper-v5", 32, threads=threads, xml_file=crowded, terminate_when_unhealthy=False)
    first, _ = envs.reset(seed=0)
    for _ in range(2):
        with pytest.raises(EnvError, match=GAVE_UP.replace(r"\d", r"\d+")):
            fall(envs)
        assert np.array_equal(envs.reset(seed=0)[0], first)
    assert np.isfinite(envs.step(np.zeros((32, 3), np.float32))[0]).all()


def test_an_error_of_mujoco_in_a_rollout(crowded):
    kwargs = {"xml_file": crowded, "terminate_when_unhealthy": False}
    agent = surefoot.PPO(
        "Hopper-v5",
        preset="none",
        batch_size=16,
        **{"env.kwargs": kwargs},
        rollout={"num_envs": 2, "num_steps": 256, "engine": "native"},
    )
    with pytest.raises(EnvError, match=GAVE_UP):
        agent.learn(512)
    agent.close()


WILD = """
import sys
import numpy as np
from surefoot.envs import native

envs = native.make("Hopper-v5", 20, threads=2)
envs.reset(seed=0)
for number in (1e30, -1e30):
    reward = envs.step(np.full((20, 3), number, np.float32))[1]
    assert not np.isfinite(reward).any()
"""


def test_warnings_go_nowhere(tmp_path):
    done = subprocess.run([sys.executable, "-c", WILD], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_gymnasium_s_own_handlers_stay_as_they_were():
    import mujoco

    heard = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(heard.append)
    try:
        fresh = native.make("Hopper-v5", 1)
        fresh.reset(seed=0)
        fresh.step(np.full((1, 3), 1e30, np.float32))
        assert heard == []
        env = gym.make("Hopper-v5").unwrapped
        env.data.ctrl[:] = np.nan
        mujoco.mj_step(env.model, env.data)
        assert len(heard) == 1
        assert "CTRL" in heard[0]
    finally:
        mujoco.set_mju_user_warning(previous)


def test_what_the_simulation_cannot_stand_is_the_usual_error():
    kwargs = {"ctrl_cost_weight": 1e300}
    agent = surefoot.PPO(
        "Hopper-v5",
        preset="none",
        batch_size=16,
        **{"env.kwargs": kwargs},
        rollout={"num_envs": 2, "num_steps": 16, "engine": "native"},
    )
    with pytest.raises(NonFiniteError, match=r"returned -inf in its reward at step"):
        agent.learn(32)
    agent.close()
