"""Who steps envs with random actions: the subjects of `bench stepping`. Packages are imported in their process."""

import time
from collections.abc import Iterator
from itertools import cycle
from typing import Any, ClassVar, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from surefoot.benchmark.subject import Subject, Window
from surefoot.errors import EnvError

DRAWN = 64
"""Batches of random actions, drawn before the clock runs and then used in turn."""


class Stepper(Subject, Protocol):
    """An iteration is `num_steps` steps of every env."""

    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]
    """Packages of the extra `envpool`."""

    def __init__(self, env_id: str, num_envs: int, num_steps: int) -> None: ...


def random_actions(env_id: str, num_envs: int) -> list[NDArray[Any]]:
    """The same for everybody, within the bounds of the env's space."""
    one = gym.make(env_id)
    space = gym.vector.utils.batch_space(one.action_space, num_envs)
    one.close()
    space.seed(0)
    drawn = [np.asarray(space.sample()) for _ in range(DRAWN)]
    if not np.isfinite(np.stack(drawn)).all():
        raise EnvError(f"random actions of {env_id} are not finite")
    return drawn


class Vectorized:
    """Anything with the step of a vector env."""

    needs: ClassVar[tuple[str, ...]] = ()
    resets_in_a_step: ClassVar[bool] = False
    """Whether the step after an ending only resets, and so is none."""

    def __init__(self, env_id: str, num_envs: int, num_steps: int) -> None:
        self._num_envs, self._num_steps = num_envs, num_steps
        self._actions: Iterator[NDArray[Any]] = cycle(random_actions(env_id, num_envs))
        self._envs: Any = self._make(env_id, num_envs)
        self._envs.reset()
        self._ended = 0

    def _make(self, env_id: str, num_envs: int) -> Any:
        raise NotImplementedError

    def run(self, iterations: int) -> Window:
        """Steps of all envs, one after the other."""
        executed, began = 0, time.perf_counter()
        for _ in range(iterations * self._num_steps):
            _, _, terminated, truncated, _ = self._envs.step(next(self._actions))
            executed += self._num_envs
            if self.resets_in_a_step:
                executed -= self._ended
                self._ended = int(np.count_nonzero(terminated | truncated))
        return Window(iterations, executed, time.perf_counter() - began, 0.0)

    def close(self) -> None:
        """Close the envs."""
        self._envs.close()


class NativeVector(Vectorized):
    """The core's envs behind Gymnasium's vector interface: what any other library gets of them."""

    title: ClassVar[str] = "Surefoot native, vector env"

    def _make(self, env_id: str, num_envs: int) -> Any:
        from surefoot.envs import native

        return native.make(env_id, num_envs)


class NativeCore:
    """The core's dynamics alone: steps and resets recorded once, then replayed without Python between them."""

    title: ClassVar[str] = "Surefoot native, dynamics only"
    needs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, env_id: str, num_envs: int, num_steps: int) -> None:
        from surefoot.envs.adapters.gymnasium_factory import GymnasiumFactory
        from surefoot.envs.native_task import native_task, open_engine, seed_words

        self._num_envs, self._num_steps = num_envs, num_steps
        self._engine: Any = open_engine(native_task(GymnasiumFactory(env_id, {}, None, None)), num_envs)
        drawn = random_actions(env_id, num_envs)
        kind = np.float32 if np.issubdtype(drawn[0].dtype, np.floating) else np.int64
        self._actions = cycle([one.astype(kind).reshape(num_envs, -1) for one in drawn])
        self._obs, self._final_obs = ([np.zeros((num_envs, size)) for size in self._engine.obs_sizes] for _ in "ab")
        mask_size = self._engine.mask_size
        self._mask = np.ones((num_envs, mask_size), dtype=bool) if mask_size else None
        words = np.array([seed_words(env) for env in range(num_envs)], dtype=np.uint64)
        self._engine.reset(words, self._obs, self._mask)

    def run(self, iterations: int) -> Window:
        """Record once without a clock, then go back and replay with one, again and again."""
        replay_s, before = 0.0, self._engine.save()
        recorded = [self._step() for _ in range(self._num_steps)]
        after = self._engine.save()
        actions, ended = (np.stack(parts) for parts in zip(*recorded, strict=True))
        for _ in range(iterations):
            self._engine.load(before)
            began = time.perf_counter()
            self._engine.replay(actions, ended)
            replay_s += time.perf_counter() - began
        self._engine.load(after)
        return Window(iterations, iterations * self._num_steps * self._num_envs, replay_s, 0.0)

    def close(self) -> None:
        """End the threads."""
        self._engine = None

    def _step(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """One of every env: its actions, and which episodes ended."""
        actions = next(self._actions)
        terminated, truncated = np.zeros((2, self._num_envs), dtype=bool)
        outcome = {"reward": np.zeros(self._num_envs), "terminated": terminated, "truncated": truncated}
        self._engine.step(actions, self._obs, self._final_obs, outcome, self._mask)
        return actions, terminated | truncated


class EnvPool(Vectorized):
    """A thread a core; the step after an ending only resets."""

    title: ClassVar[str] = "EnvPool"
    needs: ClassVar[tuple[str, ...]] = ("envpool",)
    resets_in_a_step = True

    def _make(self, env_id: str, num_envs: int) -> Any:
        import envpool

        return envpool.make(env_id, env_type="gymnasium", num_envs=num_envs)


class GymnasiumSync(Vectorized):
    """Gymnasium's own envs, one after the other."""

    title: ClassVar[str] = "Gymnasium SyncVectorEnv"

    def _make(self, env_id: str, num_envs: int) -> Any:
        options = {"autoreset_mode": AutoresetMode.SAME_STEP}
        return gym.make_vec(env_id, num_envs, "sync", vector_kwargs=options)


STEPPERS: dict[str, type[Stepper]] = {
    "native": NativeVector,
    "native-core": NativeCore,
    "envpool": EnvPool,
    "gymnasium": GymnasiumSync,
}


def build(recipe: dict[str, Any]) -> Subject:
    """The stepper of a recipe, in the process that it is measured in."""
    return STEPPERS[recipe["side"]](recipe["env_id"], recipe["num_envs"], recipe["num_steps"])
