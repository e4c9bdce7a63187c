"""The native learner learns from observations of all kinds what PyTorch's learner does."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.errors import ConfigError
from surefoot.learning.native_learner import NativeLearner
from surefoot.native import core
from surefoot.native.kernels import set_kernel_threads
from surefoot.policies.native_plan import NativePlan, plan_policy
from tests.learning.both_learners import assert_alike, case
from tests.training.states import assert_same

VECTOR = ArraySpec("box", (3,), "float32")
PLACE = ArraySpec("discrete", (), "int64", sizes=(5,), start=(0,))
PLACES = ArraySpec("multi_discrete", (3,), "int64", sizes=(2, 4, 3), start=(0, 0, 0))
SWITCHES = ArraySpec("multi_binary", (4,), "int64")
IMAGE = ArraySpec("image", (9, 8, 3), "uint8")
DEPTH = ArraySpec("box", (10, 7), "float32")
SMALL = {"kind": "conv", "channels": [3, 5], "kernels": [3, 2], "strides": [2, 1], "features": 6}


@pytest.mark.parametrize(
    "obs",
    [PLACE, PLACES, SWITCHES, {"place": PLACE, "joints": VECTOR, "places": PLACES, "switches": SWITCHES}],
    ids=["discrete", "multi_discrete", "multi_binary", "dict"],
)
def test_observations_that_pytorch_prepares(obs: ObsSpec) -> None:
    mixed = case(obs, normalize={"obs": True, "obs_clip": 1.5})
    assert_alike(mixed.learn("native"), mixed.learn("torch"))


def conv(channels: list[int], kernels: list[int], strides: list[int]) -> dict[str, object]:
    return {"kind": "conv", "channels": channels, "kernels": kernels, "strides": strides, "features": 6}


@pytest.mark.parametrize(
    ("spec", "encoder"),
    [
        (IMAGE, SMALL),
        (ArraySpec("image", (3, 9, 8), "uint8"), SMALL),
        (DEPTH, SMALL),
        (ArraySpec("box", (1, 1), "float32"), conv([3], [1], [1])),
        (ArraySpec("box", (5, 5), "float32"), conv([2], [5], [3])),  # the kernel is the image
        (ArraySpec("box", (11, 8), "float32"), conv([1, 2], [2, 1], [3, 2])),  # strides skip pixels
        (ArraySpec("image", (4, 20, 23), "uint8"), conv([33, 7, 4], [5, 3, 2], [2, 1, 1])),
        (ArraySpec("box", (40, 36), "float32"), conv([4, 18], [3, 4], [1, 2])),  # more than 256 pixels and terms
    ],
    ids=["HxWxC", "CxHxW", "HxW", "1x1", "kernel=image", "stride>kernel", "odd", "large"],
)
def test_convolutions(spec: ArraySpec, encoder: dict[str, object]) -> None:
    images = case(spec, encoder=encoder, normalize={"obs": True}, share_trunk=True)
    assert_alike(images.learn("native"), images.learn("torch"))


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_images_beside_other_observations(memory: str) -> None:
    """Separate bodies with encoders of their own, and pieces of minibatches."""
    encoders = {"camera": SMALL, "depth": SMALL, "joints": {"kind": "mlp", "layers": [4]}}
    obs = {"camera": IMAGE, "joints": VECTOR, "place": PLACE, "depth": DEPTH}
    settings = {"activation": "elu", "memory": memory}
    mixed = case(
        obs, {"micro_batch_size": 10, "sequence_state": "recomputed"}, {"obs": True}, encoders=encoders, **settings
    )
    assert_alike(mixed.learn("native", 2), mixed.learn("torch", 2))


def test_convolutions_with_many_weights_and_few_pixels_stay_in_pytorch() -> None:
    encoder = conv([32, 256], [4, 7], [2, 1])
    images = case(ArraySpec("image", (16, 16, 3), "uint8"), encoder=encoder)
    with pytest.raises(ConfigError, match="convolutions of this size are faster in PyTorch"):
        images.build("native")
    assert images.build("auto").description == "PyTorch (convolutions of this size are faster in PyTorch)"
    depth = case(ArraySpec("box", (16, 16), "float32"), encoder=encoder).build("auto")
    assert isinstance(plan_policy(depth.policy), NativePlan), "the core acts even so"


@pytest.mark.parametrize(
    ("shape", "layers"),
    [((84, 84, 4), ([32, 64, 64], [8, 4, 3], [4, 2, 1])), ((3, 40, 40), None), ((24, 32), None), ((84, 84, 4), None)],
)
def test_convolutions_of_usual_sizes_are_native(shape: tuple[int, ...], layers: Any) -> None:
    spec = ArraySpec("image", shape, "uint8")
    assert isinstance(case(spec, encoder=conv(*layers) if layers else "conv").build("native"), NativeLearner)


class Camera(gymnasium.Env[Any, Any]):
    """A bright square is on the left or on the right; looking at it pays."""

    observation_space = gymnasium.spaces.Dict(
        view=gymnasium.spaces.Box(0, 255, (8, 10, 1), np.uint8),
        place=gymnasium.spaces.MultiDiscrete([3, 2]),
        speed=gymnasium.spaces.Box(-1, 1, (2,), np.float32),
    )
    action_space = gymnasium.spaces.Discrete(2)
    count = steps = side = 0

    def save_state(self) -> dict[str, int]:
        return {"count": self.count, "steps": self.steps, "side": self.side}

    def load_state(self, state: dict[str, int]) -> None:
        self.count, self.steps, self.side = state["count"], state["steps"], state["side"]

    def _seen(self) -> dict[str, Any]:
        self.count = (5 * self.count + 3) % 64
        self.side = self.count // 8 % 2
        view = np.zeros((8, 10, 1), np.uint8)
        view[3:5, 2 + 5 * self.side : 4 + 5 * self.side] = 200
        return {"view": view, "place": np.array([self.side, 1]), "speed": np.full(2, 0.5, np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(action == self.side)
        self.steps += 1
        return self._seen(), reward, self.steps == 5, False, {}


@pytest.mark.parametrize("env", ["FrozenLake-v1", "Taxi-v4", Camera])
@pytest.mark.parametrize("engine", ["local", "processes"])
def test_envs_with_other_observations_learn_natively(env: Any, engine: str) -> None:
    small = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": [8], "eval_episodes": 0}
    workers = {"workers": 1} if engine == "processes" else {}
    agent = PPO(env, engine=engine, normalize={"obs": True}, **small, **workers)
    agent.learn(64)
    assert isinstance(agent._started().learner, NativeLearner)


def test_learning_from_images_resumes_bit_for_bit(tmp_path: Path) -> None:
    small = {"num_envs": 2, "num_steps": 16, "batch_size": 16, "epochs": 2, "hidden": [8], "eval_episodes": 0}
    whole = PPO(Camera, engine="local", **small)
    whole.learn(32)
    whole.save(tmp_path / "half.safetensors")
    whole.learn(32)
    rest = PPO.load(tmp_path / "half.safetensors", env=Camera)
    rest.learn(32)
    assert isinstance(rest._started().learner, NativeLearner)
    assert_same(rest.policy.state_dict(), whole.policy.state_dict())


def test_threads_and_instructions_do_not_change_a_bit() -> None:
    images = case({"camera": IMAGE, "depth": DEPTH}, encoders={"depth": SMALL}, ppo={"batch_size": 64})
    images.steps = 40
    found = []
    for threads in (1, 2, 3, 7):
        set_kernel_threads(threads)
        found.append(images.learn("native"))
    set_kernel_threads(1)
    found += [images.learn("native", instructions=name) for name in {"avx2", "avx512"} & {*core().instruction_sets()}]
    for other in found[1:]:
        assert all(torch.equal(found[0][name], other[name]) for name in other)
