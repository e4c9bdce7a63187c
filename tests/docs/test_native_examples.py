"""The C++ that docs/extend quotes: compiled, verified against its Python twin, trained."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from surefoot.envs.library import library_factory
from surefoot.envs.native_single import NativeEnv
from surefoot.envs.native_task import native_task
from surefoot.verification import check, verify
from surefoot.watching.mujoco_backend import BACKENDS, renderer_of
from tests.cli.processes import Process
from tests.cli.runs import TINY, records, train
from tests.compiled import compiled
from tests.verification.forked import forked
from tests.watching.displays import find_or_skip

EXAMPLES = Path(__file__).parents[2] / "docs" / "extend" / "examples"


@pytest.mark.parametrize(("name", "metric"), [("arm", "env/miss"), ("crane", "env/load"), ("duel", "env/hits")])
def test_an_example_is_built_verified_and_trained(
    name: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "new_process", forked)
    for file in EXAMPLES.glob(f"{name}.*"):
        shutil.copy(file, tmp_path)
    library = compiled(tmp_path / f"{name}.cpp")
    report = verify(str(library))
    assert report.ok, report.differing
    train(str(library), tmp_path / "run", *TINY, "--rollout.num_steps", 64, "--steps", 256)
    seen = records(tmp_path / "run")
    assert len(seen) == 2
    assert metric in seen[-1]
    if name == "arm":
        (tmp_path / "arm.py").unlink()
        watch_without_a_twin(library, tmp_path)


def watch_without_a_twin(library: Path, folder: Path) -> None:
    """MuJoCo draws model and state of the C++ env, as it stands before it is reset."""
    env = NativeEnv(native_task(library_factory(str(library))))
    for seed in (7, None):
        obs, _ = env.reset(seed=seed)
        starts_at, is_over = obs[0], False
        assert env.pose[1] == obs[0], "the pose is time, then positions"
        while not is_over:
            obs, _, terminated, truncated, _ = env.step(np.array([0.5]))
            is_over = terminated or truncated
            assert env.pose[1] == obs[0] != starts_at
    assert round(env.pose[0] / env.seconds_per_step) == 50
    find_or_skip(any(map(renderer_of, BACKENDS)) or None, "neither EGL nor OSMesa works on this machine")
    watched = Process(record_arm, str(library), str(folder / "arm.gif")).wait().succeeded()
    assert watched.out == "same\n"
    with Image.open(folder / "arm.gif") as gif:
        first, *_, last = (np.asarray(frame.convert("L")) for frame in ImageSequence.Iterator(gif))
    assert first.shape == (480, 480)
    assert (first[60:] != last[60:]).mean() > 0.01, "the arm moves"
    assert first[60:].max() > 40, "the arm is seen"


def record_arm(library: str, path: str) -> None:
    """In a process of its own, which OpenGL is bound to."""
    from surefoot import PPO

    agent = PPO(library, seed=1, num_envs=2, num_steps=8, batch_size=16, hidden=8)
    recording = agent.record(path, 2, seed=5)
    print("same" if recording.returns == agent.evaluate(2, seed=5).rewards else "different")
