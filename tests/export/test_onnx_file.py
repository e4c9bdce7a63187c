"""Every kind of policy acts from an ONNX file as it does here, through a whole episode with its own memory."""

import json
from functools import partial

import numpy as np
import onnx
import pytest
import torch
from gymnasium import spaces
from torch import nn

from surefoot.api import PPO
from surefoot.data.specs import spec_from_json
from surefoot.errors import ExportError
from surefoot.policies.critics.scalar import ScalarCritic
from surefoot.policies.distributions.categorical import CategoricalHead
from surefoot.policies.policy import Policy, PolicyOutput
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.settings.layers import build_config
from surefoot.version import VERSION
from tests.export.agents import LENGTH, Noise, agent, difference

pytestmark = pytest.mark.xdist_group("export")

VECTOR = spaces.Box(-3, 3, (5,))
CONV = {"kind": "conv", "channels": [4], "kernels": [3], "strides": [2], "features": 8}


def names(path) -> tuple[list[str], list[str]]:
    graph = onnx.load(path).graph
    return [part.name for part in graph.input], [part.name for part in graph.output]


def test_gru_over_a_dict(tmp_path):
    """Nested keys, an image, categories that do not begin at 0; what only the critic sees or remembers stays behind."""
    body = spaces.Dict({"speed": spaces.Box(-np.inf, np.inf, (3,), np.float64), "gear": spaces.Discrete(4, start=2)})
    space = spaces.Dict({"body": body, "camera": spaces.Box(0, 255, (12, 12, 3), np.uint8), "secret": VECTOR})
    env = partial(Noise, space, spaces.Box(np.float32([-1, -5]), np.float32([2, 5])))
    policy = {"memory": {"kind": "gru", "layers": 2, "hidden_size": 8}, "encoders": {"camera": CONV}}
    made = agent(env, policy=policy | {"critic_obs": ["secret"]}, share_trunk=False)
    exported = made.export_onnx(tmp_path / "policy.onnx")
    assert difference(made, env(), exported.model) == pytest.approx({"action": 0, "state": 0}, abs=1e-5)
    inputs, outputs = names(exported.model)
    assert inputs == ["obs/body/gear", "obs/body/speed", "obs/camera", "state_0", "episode_start"]
    assert outputs == ["action", "next_state_0", "distribution/mean", "distribution/std"]
    assert len(made.policy.initial_state(1)) == 2, "the critic has a memory of its own"
    assert exported.parity.steps == LENGTH + 8
    assert 0 < exported.parity.largest_difference < 1e-5


@pytest.mark.parametrize("shared", [False, True])
def test_lstm_categorical(tmp_path, shared):
    env = partial(Noise, VECTOR, spaces.Discrete(6, start=-2), mask_size=6)
    memory = {"kind": "lstm", "hidden_size": 8, "shared": shared}
    made = agent(env, policy={"memory": memory}, share_trunk=False)
    exported = made.export_onnx(tmp_path / "policy.onnx")
    assert difference(made, env(), exported.model) == pytest.approx({"action": 0, "state": 0}, abs=1e-5)
    inputs, outputs = names(exported.model)
    assert inputs == ["obs", "state_0", "state_1", "episode_start", "action_mask"]
    assert outputs == ["action", "next_state_0", "next_state_1", "distribution/log_probs"]


def test_mlp_beta(tmp_path):
    made = agent("Pendulum-v1", distribution="beta")
    exported = made.export_onnx(tmp_path / "policy.onnx")
    env = partial(Noise, spaces.Box(-8, 8, (3,)), spaces.Box(-2, 2, (1,)))
    assert difference(made, env(), exported.model)["action"] < 1e-5
    assert names(exported.model) == (["obs"], ["action", "distribution/alpha", "distribution/beta"])
    assert exported.parity.steps == 200 + 8


@pytest.mark.parametrize(
    ("observation", "action", "mask", "policy"),
    [
        (
            spaces.MultiDiscrete([3, 4], start=[0, 5]),
            spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, 1], [0, 3]]),
            (11, (0, 2, 5, 9)),
            {"activation": "silu"},
        ),
        (spaces.MultiBinary([2, 3]), spaces.MultiBinary(5), (5, ()), {"encoder": "mlp", "share_trunk": True}),
        (
            spaces.Box(0, 255, (12, 12), np.uint8),
            spaces.Box(-4, 1, (2, 2)),
            (),
            {"encoder": CONV, "action_bounds": "rescale", "std": "state", "activation": "elu"},
        ),
    ],
    ids=["multi_discrete", "bernoulli", "rescaled gaussian from an image"],
)
def test_other_kinds(tmp_path, observation, action, mask, policy):
    env = partial(Noise, observation, action, *mask)
    made = agent(env, policy=policy)
    exported = made.export_onnx(tmp_path / "policy.onnx")
    assert difference(made, env(), exported.model)["action"] < 1e-5


def test_a_policy_of_half_precision_is_exported_in_full(tmp_path):
    env = partial(Noise, VECTOR, spaces.Box(-4, 1, (2, 2)))
    half = agent(env, distribution="tanh_gaussian", precision="bfloat16")
    exported = half.export_onnx(tmp_path / "policy.onnx")
    full = agent(env, distribution="tanh_gaussian")
    full.policy.load_state_dict(half.policy.state_dict())
    assert difference(full, env(), exported.model)["action"] < 1e-5
    assert difference(half, env(), exported.model)["action"] > 1e-4
    assert half.config.policy.precision == "bfloat16", "the agent itself is as before"


class Squares(nn.Module):
    def forward(self, obs):
        flat = obs.reshape(len(obs), -1)  # `len` gives a number, which tracing could take for a constant
        return torch.cat((flat, flat.square()), dim=1)


class Deciding(nn.Module):
    def forward(self, obs):
        return obs if obs.sum() > 0 else -obs


def test_own_modules(tmp_path):
    env = partial(Noise, VECTOR, spaces.Discrete(3))
    made = agent(env, encoder=Squares())
    assert difference(made, env(), made.export_onnx(tmp_path / "own.onnx").model)["action"] == 0
    deciding = agent(env, encoder=Deciding())
    with pytest.raises(
        ExportError, match=r"ActorCritic cannot be converted to a graph.*use only torch operations"
    ) as raised:
        deciding.export_onnx(tmp_path / "deciding.onnx")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "deciding.onnx").exists()


class Averaging(Policy):
    """A linear policy over a running average: a memory that Surefoot does not know."""

    def __init__(self, obs_spec, action_spec):
        super().__init__()
        config = PolicyConfig()
        self.head = CategoricalHead(obs_spec.size, action_spec, config)
        self.critic = ScalarCritic(obs_spec.size, config, NormalizeConfig())

    def initial_state(self, num_rows):
        return (torch.zeros(num_rows, 5),)

    def forward(self, obs, state, episode_start, action_mask=None):
        average = torch.where(episode_start[:, None], obs, 0.7 * state[0] + 0.3 * obs)
        prediction = self.critic(average)
        return PolicyOutput(self.head(average, action_mask), prediction, self.critic.value(prediction), (average,))


def test_own_policy(tmp_path):
    env = partial(Noise, VECTOR, spaces.Discrete(3))
    specs = PPO(env, num_envs=2, num_steps=8, batch_size=16).specs
    made = agent(env, policy=Averaging(specs.obs, specs.action))
    exported = made.export_onnx(tmp_path / "own.onnx")
    assert difference(made, env(), exported.model) == pytest.approx({"action": 0, "state": 0}, abs=1e-5)
    with pytest.raises(ExportError, match=r"cannot write .*; choose another file"):
        made.export_onnx(exported.model / "policy.onnx")


def test_the_file_says_what_it_is(tmp_path):
    made = agent("CartPole-v1", activation="relu")
    exported = made.export_onnx(tmp_path / "new" / "policy.onnx")
    said = {part.key: part.value for part in onnx.load(exported.model).metadata_props}
    assert said["env_id"] == "CartPole-v1"
    assert said["surefoot_version"] == VERSION
    assert build_config(json.loads(said["config"])) == made.config
    assert spec_from_json(json.loads(said["obs_spec"])) == made.specs.obs
    assert spec_from_json(json.loads(said["action_spec"])) == made.specs.action
    assert sorted(path.name for path in exported.model.parent.iterdir()) == ["policy.onnx", "policy_run.py"]
    shape = onnx.load(exported.model).graph.input[0].type.tensor_type.shape.dim
    assert [axis.dim_param or axis.dim_value for axis in shape] == ["batch", 4]


def test_no_file_is_written_over_what_is_something_else(tmp_path):
    made = agent("CartPole-v1")
    with pytest.raises(ExportError, match=r"ends with \.onnx"):
        made.export_onnx(tmp_path / "best.safetensors")
    (tmp_path / "policy_run.py").write_text("print('mine')\n")
    with pytest.raises(ExportError, match=r"policy_run\.py exists and was not written by an export"):
        made.export_onnx(tmp_path / "policy.onnx")
    assert (tmp_path / "policy_run.py").read_text() == "print('mine')\n"


def test_an_env_that_exists_is_used_itself(tmp_path):
    made = PPO(Noise(VECTOR, spaces.Discrete(2)), num_steps=16, batch_size=16)
    assert made.export_onnx(tmp_path / "own.onnx").model.exists()
    assert made.export_onnx(tmp_path / "other.onnx", env=Noise(VECTOR, spaces.Discrete(2))).model.exists()
