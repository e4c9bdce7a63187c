"""Agents of every kind that have learned nothing but act decidedly, and envs with any spaces for them."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import onnxruntime
import torch
from gymnasium import spaces

from surefoot.api import PPO

LENGTH = 20


class Noise(gym.Env):
    """Random observations; an episode is so many steps."""

    def __init__(
        self,
        observation_space: spaces.Space,
        action_space: spaces.Space,
        mask_size: int = 0,
        always: Sequence[int] = (0,),
    ) -> None:
        self.observation_space, self.action_space = deepcopy(observation_space), action_space
        self._mask_size, self._always = mask_size, list(always)
        self._step = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._step = 0
        return self.observation_space.sample(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self._step += 1
        return self.observation_space.sample(), 0.0, False, self._step == LENGTH, self._info()

    def _info(self) -> dict[str, Any]:
        if not self._mask_size:
            return {}
        mask = self.np_random.random(self._mask_size) < 0.7
        mask[self._always] = True
        return {"action_mask": mask}


def agent(env: Any, **settings: Any) -> PPO:
    """Weights far from where they began, and statistics of some observations."""
    made = PPO(env, num_envs=2, num_steps=8, batch_size=16, hidden=[16], **settings)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.policy.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
        made.policy.absorb(_observations(made))
    return made


def difference(made: PPO, env: gym.Env, model: Any) -> dict[str, float]:
    """The largest differences between the agent and a model file through an episode, each with its own memory."""
    session = onnxruntime.InferenceSession(model)
    kinds = {part.name: part.type for part in session.get_inputs()}
    outputs = [part.name for part in session.get_outputs()]
    feed = {part.name: np.zeros([1, *part.shape[1:]], np.float32) for part in session.get_inputs()}
    largest = dict.fromkeys(["action", "state"], 0.0)
    (obs, info), state, is_first, done = env.reset(seed=5), None, True, False
    while not done:
        mask = info.get("action_mask")
        action, state = made.predict(obs, state, is_first, action_mask=mask)
        given = {**_flat(obs), "episode_start": is_first, "action_mask": mask}
        feed |= {name: _row(given[name], kind) for name, kind in kinds.items() if name in given}
        results = dict(zip(outputs, session.run(None, feed), strict=True))
        parts = {name.removeprefix("next_"): part for name, part in results.items() if name.startswith("next_")}
        feed |= parts
        largest["action"] = max(largest["action"], float(np.abs(action - results["action"][0].astype(float)).max()))
        for name, part in parts.items():
            ours = state[int(name.removeprefix("state_"))].numpy()
            largest["state"] = max(largest["state"], float(np.abs(ours - part).max()))
        obs, _, terminated, truncated, info = env.step(action)
        is_first, done = False, terminated or truncated
    return largest


def _flat(obs: Any, name: str = "obs") -> dict[str, Any]:
    if not isinstance(obs, dict):
        return {name: obs}
    flat: dict[str, Any] = {}
    for key, part in obs.items():
        flat |= _flat(part, f"{name}/{key}")
    return flat


def _row(value: Any, kind: str) -> np.ndarray:
    dtypes = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(uint8)": np.uint8, "tensor(bool)": bool}
    return np.asarray(value, dtypes[kind])[None]


def _observations(made: PPO) -> Any:
    generator = np.random.default_rng(2)
    spec = made.specs.obs
    batches = {
        key: torch.from_numpy((generator.normal(size=(64, *part.shape)) * 2 + 1).astype(part.dtype))
        for key, part in (spec.items() if isinstance(spec, dict) else [("", spec)])
    }
    return batches if isinstance(spec, dict) else batches[""]
