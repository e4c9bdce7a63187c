"""Atari games of ale-py with the standard preprocessing; the arguments have EnvPool's names and defaults."""

import importlib
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from surefoot.envs.adapters.gymnasium_envs import GymEnv
from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
from surefoot.errors import EnvError
from surefoot.machine.extras import install_hint

_PREFIX = "ale_py:"
_GAME = re.compile(r"ALE/.+|\w+NoFrameskip-v[04]")
_NOOP, _FIRE = 0, 1
"""The first two actions of every game that has them."""
RAW = "obs_type"
"""An argument of ale-py's own envs. With it, they are left as they are: no preprocessing."""


def is_atari(env_id: str) -> bool:
    """Whether an id is a game of ale-py: ALE/Pong-v5 or PongNoFrameskip-v4, with or without "ale_py:"."""
    return _GAME.fullmatch(env_id.removeprefix(_PREFIX)) is not None


def register_games(env_id: str) -> str:
    """Register ale-py's games; returns the id without its module."""
    try:
        ale_py: Any = importlib.import_module("ale_py")
    except ImportError as error:
        raise EnvError(f"environment '{env_id}' requires ale-py; {install_hint('atari')}") from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # else every game prints a banner
    return env_id.removeprefix(_PREFIX)


def register_installed_games() -> None:
    """Register ale-py's games if it is installed."""
    if importlib.util.find_spec("ale_py") is not None:
        register_games("")


@dataclass(frozen=True)
class AtariFactory:
    """Creates a preprocessed game, in this process or in a worker."""

    env_id: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int | None

    def __call__(self) -> GymEnv:
        if "frameskip" in self.kwargs:
            raise EnvError("env.kwargs: use frame_skip instead of frameskip")
        ours = {name: value for name, value in self.kwargs.items() if name in _OPTIONS}
        theirs = {name: value for name, value in self.kwargs.items() if name not in _OPTIONS}
        emulator = GymnasiumFactory(
            register_games(self.env_id), {**theirs, "frameskip": 1, RAW: "grayscale"}, None, None
        )()
        game = AtariGame(emulator, Preprocessing(**ours))
        return game if self.max_episode_steps is None else gym.wrappers.TimeLimit(game, self.max_episode_steps)


@dataclass(frozen=True)
class Preprocessing:
    """What an agent sees and is rewarded for (Mnih et al., 2015; Machado et al., 2018)."""

    frame_skip: int = 4
    """Frames per action. The observation is the maximum of the last two: sprites flicker."""
    stack_num: int = 4
    """Observations of the last steps that are stacked, the newest one last."""
    img_height: int = 84
    img_width: int = 84
    noop_max: int = 30
    """A game begins with a random number of frames without an action, up to this one."""
    use_fire_reset: bool = True
    """Press FIRE at the start of games that wait for it."""
    episodic_life: bool = False
    """The loss of a life ends the episode; the game continues in the next one."""
    reward_clip: bool = False
    """Replace rewards by their sign."""

    def __post_init__(self) -> None:
        for name, least in {"frame_skip": 1, "stack_num": 1, "img_height": 1, "img_width": 1, "noop_max": 0}.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise EnvError(f"env.kwargs: {name} must be a whole number of at least {least}, not {value!r:.60}")


_OPTIONS = frozenset(Preprocessing.__dataclass_fields__)


class AtariGame(gym.Wrapper[Any, Any, Any, Any]):
    """A game in grayscale, `[stack_num, img_height, img_width]`; `info["reward"]` is the unclipped reward of a step."""

    def __init__(self, env: GymEnv, how: Preprocessing) -> None:
        super().__init__(env)
        emulator: Any = env.unwrapped
        self._how, self._ale, self._buttons = how, emulator.ale, emulator._action_set
        self._waits_for_fire = how.use_fire_reset and emulator.get_action_meanings()[_FIRE:][:1] == ["FIRE"]
        height, width = self._ale.getScreenDims()
        self._frames = np.zeros((2, height, width), np.uint8)
        self._rows, self._columns = _Averages(height, how.img_height), _Averages(width, how.img_width)
        shape = (how.stack_num, how.img_height, how.img_width)
        self._stack = np.zeros(shape, np.uint8)
        self.observation_space = spaces.Box(0, 255, shape, np.uint8)
        self._lives, self._continues = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start a game, or continue it after the loss of a life."""
        if not self._continues or seed is not None:
            self.env.reset(seed=seed, options=options)
            self._wait()
        if self._waits_for_fire:
            self._ale.act(self._buttons[_FIRE])
        self._lives, self._continues = self._ale.lives(), False
        self._ale.getScreenGrayscale(self._frames[0])
        self._frames[1] = self._frames[0]
        self._stack[:] = self._seen()
        return self._stack.copy(), self._info(0.0)

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Hold an action for some frames."""
        how, ale = self._how, self._ale
        reward = self._hold(self._buttons[int(action)])
        self._stack[:-1] = self._stack[1:]
        self._stack[-1] = self._seen()
        is_terminated, is_truncated = bool(ale.game_over(with_truncation=False)), bool(ale.game_truncated())
        has_died, self._lives = how.episodic_life and ale.lives() < self._lives, ale.lives()
        self._continues = has_died and not (is_terminated or is_truncated)
        worth = float(np.sign(reward)) if how.reward_clip else reward
        return self._stack.copy(), worth, is_terminated or has_died, is_truncated, self._info(reward)

    def _hold(self, button: Any) -> float:
        """Hold a button for `frame_skip` frames and keep the last two of them; returns the sum of the rewards."""
        reward, ale = 0.0, self._ale
        for left in range(self._how.frame_skip - 1, -1, -1):
            reward += ale.act(button)
            is_over = ale.game_over(with_truncation=True)
            if left < 2 or is_over:
                self._frames[0] = self._frames[1]
                ale.getScreenGrayscale(self._frames[1])
            if is_over or self._how.frame_skip == 1:
                self._frames[0] = self._frames[1]
                break
        return reward

    def _wait(self) -> None:
        count = int(self.env.unwrapped.np_random.integers(1, self._how.noop_max + 1)) if self._how.noop_max else 0
        for _ in range(count):
            self._ale.act(self._buttons[_NOOP])
            if self._ale.game_over(with_truncation=True):
                self.env.reset()

    def _seen(self) -> NDArray[np.uint8]:
        """The maximum of two frames, reduced to the size of the observation by averaging areas."""
        reduced = self._columns.of(self._rows.of(np.maximum(*self._frames)).T).T
        seen: NDArray[np.uint8] = np.rint(reduced).astype(np.uint8)
        return seen

    def _info(self, reward: float) -> dict[str, Any]:
        return {"lives": self._ale.lives(), "reward": reward}


class _Averages:
    """Reduces the first axis of an image: an output is the mean over its share of the inputs, fractions included.

    Sums of a few rows instead of a product of matrices, which would use all cores in every env.
    """

    def __init__(self, source: int, target: int) -> None:
        edges = np.arange(target + 1) * (source / target)
        first, count = np.floor(edges[:-1]).astype(int), int(np.ceil(source / target)) + 1
        starts = first[:, None] + np.arange(count)
        overlap = np.minimum(edges[1:, None], starts + 1) - np.maximum(edges[:-1, None], starts)
        self._weights = (overlap.clip(0) * (target / source)).astype(np.float32)[..., None]
        self._rows = starts.clip(max=source - 1)

    def of(self, image: NDArray[Any]) -> NDArray[np.float32]:
        """The image with fewer rows."""
        reduced: NDArray[np.float32] = sum(
            self._weights[:, tap] * image[self._rows[:, tap]] for tap in range(self._rows.shape[1])
        )
        return reduced
