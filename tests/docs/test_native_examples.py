"""The C++ that docs/extend quotes: compiled, verified against its Python twin, trained."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageSequence

from surefoot import PPO, Hook, IterationReport
from surefoot.envs.library import library_factory
from surefoot.envs.make import make_vec_env
from surefoot.envs.native_single import NativeEnv
from surefoot.envs.native_task import native_task
from surefoot.envs.protocol import slot_for, step_all
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.verification import check, verify
from surefoot.watching.mujoco_backend import BACKENDS, renderer_of
from tests.cli.processes import Process
from tests.cli.runs import TINY, records, train
from tests.compiled import compiled
from tests.seams.runs import bring
from tests.training.states import assert_same
from tests.verification.forked import forked
from tests.verification.sizes import less
from tests.watching.displays import find_or_skip

EXAMPLES = Path(__file__).parents[2] / "docs" / "extend" / "examples"


CRANE = pytest.mark.xdist_group("crane")
TINY_CRANE = {"num_envs": 4, "num_steps": 16, "batch_size": 32, "epochs": 1, "hidden": 8, "preset": "none"}


@pytest.mark.parametrize(
    ("name", "metric"), [("arm", "env/miss"), pytest.param("crane", "env/load", marks=CRANE), ("duel", "env/hits")]
)
def test_an_example_is_built_verified_and_trained(
    name: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "new_process", forked)
    less(monkeypatch, limits=(23, 7))
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


@pytest.fixture
def crane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library and its twin, in the current folder; MuJoCo writes its warnings there."""
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["crane"])
    return "./crane.so"


class Lightens(Hook):
    """After the first rollout, no load that was drawn is in the range any more."""

    def before_rollout(self) -> None:
        if self.run.progress.iteration == 1:
            self.run.envs.set_parameters({"heaviest": 0.5})


@CRANE
def test_a_run_resumes_after_the_range_of_its_models_has_moved(crane: str) -> None:
    whole = PPO(crane, **TINY_CRANE).learn(64 * 5, hooks=[Lightens()], progress=False)
    half = PPO(crane, **TINY_CRANE).learn(64 * 2, hooks=[Lightens()], progress=False)
    half.save("half.safetensors")
    half = PPO.load("half.safetensors", trust=True).learn(64 * 3, hooks=[Lightens()], progress=False)
    assert_same(half.policy.state_dict(), whole.policy.state_dict(), "policy")


@CRANE
@pytest.mark.parametrize("engine", ["native", "local"])
def test_a_crane_that_is_thrown_ends_an_episode_and_is_counted(crane: str, engine: str) -> None:
    thrown: list[float] = []

    def count(report: IterationReport) -> None:
        thrown.extend(episode.metrics["thrown"] for episode in report.stats.finished if episode.length < 50)

    settings = {**TINY_CRANE, "engine": engine, "env.kwargs": {"gust": 1e13}}
    agent = PPO(crane, **settings).learn(64 * 3, hooks=[count], progress=False)
    assert set(thrown) == {1.0}
    assert all(weight.isfinite().all() for weight in agent.policy.parameters())


@CRANE
def test_a_crane_is_thrown_alike_in_cpp_and_in_python(crane: str) -> None:
    config, rollouts = EnvConfig(kwargs={"gust": 3e12}), (RolloutConfig(), RolloutConfig(engine="local"))
    envs = [make_vec_env(crane, config, 3, 3, rollout) for rollout in rollouts]
    slots = [slot_for(env) for env in envs]
    for env, slot in zip(envs, slots, strict=True):
        env.reset(slot)
    ends = 0
    for step in range(30):
        actions = np.full((3, 1), np.sin(step), np.float32)
        for env, slot in zip(envs, slots, strict=True):
            step_all(env, actions, slot)
        for name in ("obs", "reward", "terminated", "metrics"):
            ours, theirs = (getattr(slot, name) for slot in slots)
            assert np.array_equal(ours, theirs, equal_nan=name == "metrics"), (step, name)
        ends += int(slots[0].terminated.sum())
    assert ends > 0


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
    agent = PPO(library, seed=1, num_envs=2, num_steps=8, batch_size=16, hidden=8)
    recording = agent.record(path, 2, seed=5)
    print("same" if recording.returns == agent.evaluate(2, seed=5).rewards else "different")
