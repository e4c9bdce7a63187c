"""Keys with the encoder none are recorded, saved and checked, but no network reads them."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot import PPO
from surefoot.data.records import Rollout
from surefoot.data.specs import ArraySpec
from surefoot.errors import ConfigError, EnvError, PolicyError
from surefoot.learning.terms import Objective
from surefoot.policies.actor_critic import ActorCritic
from surefoot.settings.config import NormalizeConfig, PolicyConfig
from surefoot.training.hooks import Hook

VECTOR, CHOICE = ArraySpec("box", (3,), "float32"), ArraySpec("discrete", (), "int64", sizes=(3,), start=(0,))
SETTINGS: dict[str, Any] = {
    "num_envs": 3,
    "num_steps": 12,
    "batch_size": 18,
    "epochs": 2,
    "encoders": {"fuel": "none"},
    "normalize": {"obs": True},
    "hidden": [16],
    "rollout.workers": 2,
    "env.max_episode_steps": 9,
}


def probe(**settings: Any) -> PPO:
    return PPO("Probe-v0", **SETTINGS | settings)


class Watch(Hook):
    """Keeps what rollouts recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.fuel: list[torch.Tensor] = []

    def after_rollout(self, rollout: Rollout) -> None:
        assert isinstance(rollout.obs, dict)
        self.fuel.append(rollout.obs["fuel"].clone())


def weights(agent: PPO) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in agent.policy.state_dict().items()}


@pytest.mark.parametrize("learner", ["torch", "native"])
@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("engine", ["local", "processes", "native"])
def test_recorded_on_every_engine_but_not_learned_from(
    engine: str, memory: str, learner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    monkeypatch.setattr(
        Objective,
        "__call__",
        lambda *args, call=Objective.__call__: seen.append({*args[2].obs}) or call(*args),  # type: ignore[func-returns-value]
    )
    settings = {"rollout.engine": engine, "memory": memory, "train.learner": learner}
    watch = Watch()
    agent = probe(**settings).learn(36, hooks=[watch])
    assert watch.fuel[0].shape == (12, 3, 1)
    assert watch.fuel[0].std() > 1  # fuel burns from up to 28
    assert not any("fuel" in name for name in agent.policy.state_dict())
    assert all("fuel" not in keys for keys in seen)
    assert bool(seen) == (learner == "torch")
    agent.save(tmp_path / "agent.safetensors")
    agent.learn(36)
    again = PPO.load(tmp_path / "agent.safetensors").learn(36)
    for name, tensor in weights(agent).items():
        assert torch.equal(tensor, again.policy.state_dict()[name]), name


class Spilling(gym.Env[Any, Any]):
    """Its tape, which no network reads, breaks in the fifth step."""

    observation_space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "tape": spaces.Box(-1, 1, (3, 2))})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self._step = 0
        return self._obs(), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        return self._obs(), 0.0, False, False, {}

    def _obs(self) -> dict[str, Any]:
        tape = np.full((3, 2), np.nan if self._step == 5 else 0.5, np.float32)
        return {"a": np.zeros(2, np.float32), "tape": tape}


def test_it_is_checked() -> None:
    agent = PPO(Spilling, num_envs=2, num_steps=8, batch_size=8, encoders={"tape": "none"})
    with pytest.raises(EnvError, match="tape"):
        agent.learn(16)


def test_what_it_shows_changes_nothing() -> None:
    policy = ActorCritic(
        {"a": VECTOR, "tape": VECTOR}, CHOICE, PolicyConfig(encoders={"tape": "none"}), NormalizeConfig(obs=True)
    )
    obs, start = {"a": torch.randn(4, 3), "tape": torch.randn(4, 3)}, torch.ones(4, dtype=torch.bool)
    value = policy(obs, (), start).value
    policy.absorb_obs(obs)
    assert [*policy.obs_normalizers()] == ["a"]
    assert [*policy.obs_units(obs)] == ["a"]
    assert not torch.equal(policy(obs, (), start).value, value)
    value = policy(obs, (), start).value
    assert torch.equal(policy(obs | {"tape": torch.full((4, 3), torch.nan)}, (), start).value, value)


def test_evaluation_and_export_leave_it_out(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    agent = probe().learn(36)
    assert len(agent.evaluate(2).rewards) == 2
    graph = onnx.load(agent.export_onnx(tmp_path / "policy.onnx").model).graph
    assert {one.name for one in graph.input} == {"obs/cues", "obs/wheel", "action_mask"}


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        ({"encoders": {"a": "none", "tape": "none"}}, "policy.encoders: every key has the encoder none"),
        ({"encoders": {"tape": "none"}, "critic_obs": ["tape"]}, "policy.critic_obs: 'tape' has the encoder none"),
        ({"encoder": "none"}, "the encoder none is for keys of Dict observations"),
    ],
)
def test_networks_must_read_something(policy: dict[str, Any], error: str) -> None:
    with pytest.raises((ConfigError, PolicyError), match=error):
        ActorCritic({"a": VECTOR, "tape": VECTOR}, CHOICE, PolicyConfig(**policy), NormalizeConfig())
