"""Small real environments whose every number says where it comes from, so that misaligned fields cannot pass."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.envs.adapters.gymnasium_envs import GymnasiumEnvs
from surefoot.envs.protocol import Slot, VecEnv, new_slot

ENDLESS = math.inf


class Place(NamedTuple):
    """Where an observation was made; `action` led there, `luck` came from the env's own generator."""

    index: int
    episode: int
    step: int
    action: float
    luck: float

    @property
    def code(self) -> int:
        """One number for the first three, exact in float32: env 2, episode 13, step 7 is 21307."""
        return 10_000 * self.index + 100 * self.episode + self.step


class Form(NamedTuple):
    """An observation space, and how a place is shown in it."""

    space: spaces.Space[Any]
    show: Callable[[Place], Any]


def _box(*shape: int, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, dtype)


def _array(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype=dtype)


def _image(place: Place) -> np.ndarray:
    return np.broadcast_to(np.array(place[:3], dtype=np.uint8), (12, 13, 3)).copy()


def _tag(place: Place) -> int:
    return (331 * place.index + 37 * place.episode + place.step) % 1000


FORMS: dict[str, Form] = {
    "vector": Form(_box(5), lambda place: _array(*place)),
    "double": Form(_box(5, dtype=np.float64), lambda place: _array(*place, dtype=np.float64)),
    "matrix": Form(_box(2, 2), lambda place: _array(*place[:3], place.luck).reshape(2, 2)),
    "bytes": Form(spaces.Box(0, 255, (3,), np.uint8), lambda place: _array(*place[:3], dtype=np.uint8)),
    "image": Form(spaces.Box(0, 255, (12, 13, 3), np.uint8), _image),
    "gray image": Form(spaces.Box(0, 255, (12, 13), np.uint8), lambda place: _image(place)[..., 2]),
    "discrete": Form(spaces.Discrete(1000), lambda place: np.int64(_tag(place))),
    "shifted discrete": Form(spaces.Discrete(1000, start=-7), lambda place: _tag(place) - 7),
    "multi_discrete": Form(
        spaces.MultiDiscrete([5, 90, 90], start=[0, 1, -2]),
        lambda place: _array(place.index, place.episode + 1, place.step - 2, dtype=np.int64),
    ),
    "multi_binary": Form(
        spaces.MultiBinary(17), lambda place: np.array([place.code >> bit & 1 for bit in range(17)], np.int8)
    ),
    "dict": Form(
        spaces.Dict({"where": _box(3), "luck": _box(1)}),
        lambda place: {"where": _array(*place[:3]), "luck": _array(place.luck)},
    ),
    "nested": Form(
        spaces.Dict({"arm": spaces.Dict({"joint": _box(2), "grip": spaces.Discrete(90)}), "clock": _box(2, 1)}),
        lambda place: {
            "arm": {"joint": _array(place.index, place.luck), "grip": place.step},
            "clock": _array(place.episode, place.step).reshape(2, 1),
        },
    ),
    "tuple": Form(
        spaces.Tuple((_box(3), spaces.Discrete(90, start=1), spaces.Dict({"luck": _box(1)}))),
        lambda place: (_array(*place[:3]), place.step + 1, {"luck": _array(place.luck)}),
    ),
    "picture dict": Form(
        spaces.Dict({"camera": spaces.Box(0, 255, (12, 13, 3), np.uint8), "where": _box(3), "luck": _box(1)}),
        lambda place: {"camera": _image(place), "where": _array(*place[:3]), "luck": _array(place.luck)},
    ),
}

ACTIONS: dict[str, spaces.Space[Any]] = {
    "discrete": spaces.Discrete(4),
    "shifted discrete": spaces.Discrete(4, start=-1),
    "multi_discrete": spaces.MultiDiscrete([3, 2]),
    "shifted multi_discrete": spaces.MultiDiscrete([[3, 2], [2, 4]], start=[[1, -1], [0, 5]]),
    "multi_binary": spaces.MultiBinary(3),
    "binary grid": spaces.MultiBinary([2, 2]),
    "box": spaces.Box(-1, 1, (2, 3)),
    "uneven box": spaces.Box(np.array([-2.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float64),
    "open box": spaces.Box(-np.inf, np.inf, (1,)),
}


class CounterEnv(gym.Env[Any, Any]):
    """Counts episodes and steps and shows them; the reward is the code of the place that the step began at.

    Episodes are as long, and end, as `lengths` and `endings` say in turn. Refuses actions that are not in its space or
    that its mask forbids.
    """

    def __init__(
        self,
        index: int = 0,
        lengths: Sequence[float] = (3, 1, 4),
        endings: Sequence[str] = ("terminated", "truncated", "both"),
        form: str = "vector",
        actions: str = "discrete",
        masks_in_info: bool = False,
    ) -> None:
        self.observation_space, self._show = FORMS[form]
        self.action_space = ACTIONS[actions]
        self._index, self._lengths, self._endings = index, lengths, endings
        self._masks_in_info = masks_in_info
        self._place = Place(index, -1, 0, 0.0, 0.0)
        self.received: list[Any] = []

    @property
    def place(self) -> Place:
        """Where the env is."""
        return self._place

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        episode = 0 if seed is not None else self._place.episode + 1
        self._place = Place(self._index, episode, 0, 0.0, float(np.float32(self.np_random.random())))
        return self.observe(), self._info()

    def step(self, action: Any) -> Any:
        if not self.action_space.contains(action):
            raise ValueError(f"{action!r} is not in {self.action_space}")
        if self._masks_in_info or hasattr(self, "action_masks"):
            self._refuse_forbidden(action)
        self.received.append(np.copy(action))
        index, episode, step, _, _ = self._place
        reward = float(self._place.code)
        luck = float(np.float32(self.np_random.random()))
        self._place = Place(index, episode, step + 1, float(np.sum(action, dtype=np.float32)), luck)
        has_ended = step + 1 >= self._lengths[episode % len(self._lengths)]
        ending = self._endings[episode % len(self._endings)] if has_ended else ""
        return self.observe(), reward, ending in ("terminated", "both"), ending in ("truncated", "both"), self._info()

    def observe(self) -> Any:
        """The place, in the env's form."""
        return self._show(self._place)

    def current_mask(self) -> np.ndarray:
        """Forbids one choice of each action element, another one every step."""
        turn, space = self._place.episode + self._place.step, self.action_space
        if isinstance(space, spaces.MultiBinary):
            return np.arange(np.prod(space.shape)) != turn % np.prod(space.shape)
        sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.ravel()
        return np.concatenate([np.arange(size) != turn % size for size in sizes])

    def _refuse_forbidden(self, action: Any) -> None:
        space, mask = self.action_space, self.current_mask()
        if isinstance(space, spaces.MultiBinary):
            allowed = bool(np.all(mask | (np.ravel(action) == 0)))
        else:
            sizes = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.ravel()
            offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            allowed = bool(mask[offsets + np.ravel(action) - np.ravel(space.start)].all())
        if not allowed:
            raise ValueError(f"{action!r} is forbidden by {mask}")

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.current_mask().astype(np.int8)} if self._masks_in_info else {}


class MaskMethodEnv(CounterEnv):
    """Tells its mask when asked, as sb3-contrib's envs do."""

    def action_masks(self) -> np.ndarray:
        return self.current_mask()


class ReusingEnv(CounterEnv):
    """Returns the same array every time, as many fast envs do."""

    def observe(self) -> np.ndarray:
        shown: np.ndarray = super().observe()
        if not hasattr(self, "_shared"):
            self._shared = shown
        self._shared[...] = shown
        return self._shared


class OldStyleEnv(CounterEnv):
    """Gym's step of four values; a time limit is marked in the info."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated or truncated, info | {"TimeLimit.truncated": truncated and not terminated}


class LooseTypesEnv(CounterEnv):
    """Flags as ints and as arrays, the reward as an array of one."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, np.array([reward], np.float64), int(terminated), np.array(truncated), info


class ResetCountingEnv(CounterEnv):
    """Pays what a seed cannot undo: how often it has been reset in its life."""

    resets = 0

    def reset(self, **kwargs: Any) -> Any:
        self.resets += 1
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(action)
        return obs, float(self.resets), *rest


class SavingEnv(CounterEnv):
    """Says where it is, and goes there when told."""

    def save_state(self) -> dict[str, Any]:
        return {"place": list(self._place)}

    def load_state(self, state: dict[str, Any]) -> None:
        self._place = Place(*state["place"])


Spoil = Callable[[tuple[Any, ...]], Any]


class SpoiledEnv(CounterEnv):
    """A counter until the step `at` of its life, whose result it spoils."""

    def __init__(self, spoil: Spoil, at: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._spoil, self._at = spoil, at

    def step(self, action: Any) -> Any:
        result = super().step(action)
        return self._spoil(result) if len(self.received) == self._at + 1 else result


class RaisingEnv(CounterEnv):
    """Raises in its constructor, in a reset that no seed was given to, or in its second step."""

    def __init__(self, where: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._where = where
        self._raise_in("constructor")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is None:
            self._raise_in("reset")
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        if self._place.step == 1:
            self._raise_in("step")
        return super().step(action)

    def _raise_in(self, where: str) -> None:
        if where == self._where:
            raise RuntimeError(f"the {where} is broken")


def factories(count: int, kind: Callable[..., gym.Env[Any, Any]] = CounterEnv, **kwargs: Any) -> list[partial[Any]]:
    """Makers of envs that know their index."""
    return [partial(kind, index=index, **kwargs) for index in range(count)]


def counters(
    count: int, kind: Callable[..., gym.Env[Any, Any]] = CounterEnv, seed: int = 3, **kwargs: Any
) -> GymnasiumEnvs:
    """Counters in the local engine."""
    return GymnasiumEnvs(factories(count, kind, **kwargs), seed)


def opened(env: VecEnv) -> Slot:
    """A slot with the observations that follow a reset."""
    slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
    env.reset(slot)
    return slot
