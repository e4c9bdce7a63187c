"""Names envs that exist: by an id and arguments that create them again exactly, or as objects that no file contains."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium as gym
from gymnasium import wrappers
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.vector import VectorEnv, VectorWrapper

from surefoot.envs.adapters.atari import is_atari
from surefoot.settings.plain_values import plain

_OBJECT = re.compile(r"\w+\(.*\)")
_CHECKS: tuple[type, ...] = (wrappers.PassiveEnvChecker, wrappers.OrderEnforcing)
"""What gym.make puts around every env; everything below belongs to the env itself."""
_ONLY_WATCH: tuple[type, ...] = (
    *_CHECKS,
    wrappers.HumanRendering,
    wrappers.RecordEpisodeStatistics,
    wrappers.RecordVideo,
    wrappers.RenderCollection,
    wrappers.vector.RecordEpisodeStatistics,
)
"""Wrappers that change neither observations nor rewards, actions and ends of episodes."""
_OF_VECTORS = {"num_envs", "vectorization_mode", "vector_kwargs"}
"""Arguments of gym.make_vec that the spec of a vector env holds beside those of its envs."""


@dataclass(frozen=True)
class Given:
    """What a config says about a source of envs that is not an id."""

    name: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_episode_steps: int | None = None


@dataclass(frozen=True)
class _Made:
    """What gym.make or gym.make_vec was asked for, without the wrappers that only check or watch."""

    spec: EnvSpec
    limit: int | None
    others: list[Any]
    """Other wrappers, the outermost one first."""


def is_object_name(env_id: str) -> bool:
    """Whether this names an env or a function that was passed to PPO, such as `TransformReward(CartPole-v1)`."""
    return _OBJECT.fullmatch(env_id) is not None


def given(source: Any) -> Given:
    """The id of an env and its arguments if they create it again exactly, otherwise the name of an object."""
    if isinstance(source, partial):
        return given(source.func)
    if not isinstance(source, gym.Env | VectorEnv):
        name = str(getattr(source, "__name__", type(source).__name__))
        return _by_class(name)
    inner = source.unwrapped
    if inner.spec is None:
        return _by_class(type(source).__name__)
    made = _made_vector(source) if isinstance(source, VectorEnv) else _made(source)
    same = None if made is None else _by_id(made, source)
    return same or Given(f"{_cause(source, made)}({inner.spec.id})")


def _by_class(name: str) -> Given:
    """The name of a class or a function, made unlike an id that happens to have the same name."""
    return Given(f"{name}()" if name in gym.registry else name)


def _cause(source: Any, made: _Made | None) -> str:
    """The class that the id leaves out: a wrapper, or the env itself if its arguments cannot be written."""
    return type(made.others[0] if made is not None and made.others else source.unwrapped).__name__


def _made(source: gym.Env[Any, Any]) -> _Made | None:
    layers: list[Any] = [source]
    while isinstance(layers[-1], gym.Wrapper):
        layers.append(layers[-1].env)
    spec: EnvSpec = layers[-1].spec
    product = _product(layers, _creator(spec))
    if product is None:
        return None
    limits = [layer._max_episode_steps for layer in layers[:product] if type(layer) is wrappers.TimeLimit]
    others = [layer for layer in layers[:product] if type(layer) not in (*_ONLY_WATCH, wrappers.TimeLimit)]
    return _Made(spec, min(limits, default=None), others)


def _product(layers: list[Any], creator: Callable[..., Any] | None) -> int | None:
    """Which of the layers, from the outermost one, is what the entry point created."""
    if isinstance(creator, type):
        return next((index for index, layer in enumerate(layers) if type(layer) is creator), None)
    checks = [index for index, layer in enumerate(layers) if type(layer) in _CHECKS]
    return checks[-1] + 1 if creator is not None and checks else None


def _creator(spec: EnvSpec) -> Callable[..., Any] | None:
    try:
        return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
    except (ImportError, AttributeError, ValueError):  # an entry point that was never used to make this env
        return None


def _made_vector(source: VectorEnv[Any, Any, Any]) -> _Made:
    others = []
    while isinstance(source, VectorWrapper):
        if type(source) not in _ONLY_WATCH:
            others.append(source)
        source = source.env
    spec = source.spec
    assert spec is not None
    limit = spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
    return _Made(spec, limit, others)


def _by_id(made: _Made, source: Any) -> Given | None:
    """The id with the arguments that differ from the registered ones, or None if the id creates another env."""
    spec, registered = made.spec, gym.registry.get(made.spec.id)
    if registered is None or spec.entry_point != registered.entry_point:
        return None
    if len(made.others) != len(registered.additional_wrappers):
        return None
    if made.others and getattr(source.spec, "additional_wrappers", None) != registered.additional_wrappers:
        return None
    if (made.limit is not None and made.limit < 1) or (made.limit is None and registered.max_episode_steps is not None):
        return None
    left_out = {"render_mode", "max_episode_steps", *(_OF_VECTORS if isinstance(source, VectorEnv) else ())}
    same = {} if is_atari(spec.id) else registered.kwargs  # a game without its arguments is preprocessed
    kwargs = {
        name: value
        for name, value in spec.kwargs.items()
        if name not in left_out and not (name in same and _equal(same[name], value))
    }
    try:
        plain(kwargs)
    except ValueError:
        return None
    return Given(spec.id, kwargs, None if made.limit == registered.max_episode_steps else made.limit)


def _equal(registered: Any, value: Any) -> bool:
    try:
        return bool(registered == value)
    except Exception:  # arrays
        return False
