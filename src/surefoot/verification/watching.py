"""Checks a custom env without any adapter: do its observations match its observation space?"""

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.protocol import flat_mask, new_slot
from surefoot.envs.protocol.spaces import EnvActions
from surefoot.envs.protocol.steps import env_step
from surefoot.verification.contract import random_actions

STEPS = 50


def broken_promises(env: gym.Env[Any, Any], seed: int) -> list[str]:
    """Observations that do not match the space's shapes and types, one message per kind of mismatch."""
    found: dict[str, None] = {}
    env.action_space.seed(seed)
    obs, info = env.reset(seed=seed)
    found.update(dict.fromkeys(_problems(obs, env.observation_space, "reset")))
    for _ in range(STEPS):
        step = env_step(env.step(_action(env, info)), 0, lambda _: "the env")
        found.update(dict.fromkeys(_problems(step.obs, env.observation_space, "step")))
        info = step.info
        if step.terminated or step.truncated:
            _, info = env.reset()
    return list(found)


def _action(env: gym.Env[Any, Any], info: Mapping[str, Any]) -> Any:
    mask = info.get("action_mask")
    if mask is None:
        return env.action_space.sample()
    actions = EnvActions(env.action_space)
    slot = new_slot(1, {}, actions.spec.num_choices)
    if slot.action_mask is not None:
        slot.action_mask[0] = flat_mask(mask, actions.spec, "the env")
    return actions.rows(random_actions(env.action_space.np_random, actions.spec, slot))[0]


def _problems(obs: Any, space: spaces.Space[Any], call: str, where: str = "observation") -> Iterator[str]:
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, Mapping) or set(obs) != set(space):
            yield f"{call} returns a {where} whose keys are not exactly {', '.join(map(str, space))}"
            return
        for key, part in space.items():
            yield from _problems(obs[key], part, call, f"observation '{key}'")
    elif isinstance(space, spaces.Tuple):
        for number, part in enumerate(space):
            yield from _problems(obs[number], part, call, f"observation {number}")
    elif isinstance(space, spaces.Discrete):
        if not space.contains(obs):
            yield f"{call} returns {obs!r} as {where}, which is not in {space}"
    elif np.shape(obs) != space.shape:
        yield f"{call} returns a {where} of shape {np.shape(obs)}; its space has {space.shape}"
    elif not isinstance(obs, np.ndarray) or obs.dtype != space.dtype:
        given = obs.dtype if isinstance(obs, np.ndarray) else type(obs).__name__
        yield f"{call} returns a {where} of type {given}; its space has {space.dtype}"
