"""Envs for whole runs, as `tests.cli.odd_envs:NAME`."""

import builtins
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Forgetful(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that nobody knows the state of."""


class SignallingCartPole(CartPoleEnv):
    """Sends signals to its own process in one step of its life, unless the file `done` is there; can save its state."""

    def __init__(self, at: int, numbers: list[int], done: str) -> None:
        super().__init__()
        self._left, self._numbers, self._done = at, numbers, Path(done)

    def step(self, action: Any) -> Any:
        self._left -= 1
        if self._left == 0 and not self._done.exists():
            self._done.touch()
            for number in self._numbers:
                os.kill(os.getpid(), number)
        return super().step(action)

    def save_state(self) -> dict[str, Any]:
        return {"state": self.state, "steps_beyond_terminated": self.steps_beyond_terminated}

    def load_state(self, state: dict[str, Any]) -> None:
        self.state, self.steps_beyond_terminated = state["state"], state["steps_beyond_terminated"]


class KilledWhenNew(SignallingCartPole):
    """Kills its process in its first step, once, if it was made after a file was."""

    def __init__(self, after: str, done: str) -> None:
        super().__init__(1 if Path(after).exists() else 0, [signal.SIGKILL], done)


class FirstFails(CartPoleEnv):
    """Fails in its first step if it is the first one of all processes that steps."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def step(self, action: Any) -> Any:
        with suppress(FileExistsError):
            os.close(os.open(self._file, os.O_CREAT | os.O_EXCL))
            raise RuntimeError("the cart is broken")
        return super().step(action)


class Unsavable(SignallingCartPole):
    """Gives a state that no file can hold."""

    def save_state(self) -> dict[str, Any]:
        return {"visited": object()}


class Tracing(CartPoleEnv):
    """Leaves a file when it is made."""

    def __init__(self, trace: str) -> None:
        super().__init__()
        Path(trace).touch()


class Exiting(CartPoleEnv):
    """Raises something in one of its methods, from some call on."""

    def __init__(self, where: str, what: str = "SystemExit", at: int = 0) -> None:
        super().__init__()
        self._where, self._what, self._left = where, what, at
        self.parameters = {"wind": 0.0}
        self._may_raise("constructor")

    def _may_raise(self, where: str) -> None:
        if where == self._where:
            self._left -= 1
            if self._left < 0:
                raise getattr(builtins, self._what)(0)

    def reset(self, **kwargs: Any) -> Any:
        self._may_raise("reset")
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        self._may_raise("step")
        return super().step(action)

    def set_parameters(self, values: Any) -> None:
        self._may_raise("set_parameters")

    def save_state(self) -> dict[str, Any]:
        self._may_raise("save_state")
        return {"state": self.state}

    def load_state(self, state: dict[str, Any]) -> None:
        self.state = state["state"]

    def close(self) -> None:
        self._may_raise("close")
        super().close()


class Forking(CartPoleEnv):
    """Forks in one step, and its child goes on like the parent or raises."""

    def __init__(self, at: int, raises: bool) -> None:
        super().__init__()
        self._left, self._raises = at, raises

    def step(self, action: Any) -> Any:
        self._left -= 1
        if self._left == 0 and (child := os.fork()):
            os.waitpid(child, 0)
        elif self._left == 0 and self._raises:
            raise RuntimeError("in the child")
        return super().step(action)


class Hoarding(CartPoleEnv):
    """Holds every file descriptor that its process may open, from one step to another."""

    def __init__(self, begin: int, end: int) -> None:
        super().__init__()
        self._step, self._begin, self._end = 0, begin, end
        self._held: list[int] = []

    def step(self, action: Any) -> Any:
        self._step += 1
        if self._step == self._begin:
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            with suppress(OSError):
                while True:
                    self._held.append(os.open("/dev/null", os.O_RDONLY))
        if self._step == self._end:
            for descriptor in self._held:
                os.close(descriptor)
        return super().step(action)


class Talking(CartPoleEnv):
    """Prints in every step."""

    def step(self, action: Any) -> Any:
        print("step", flush=True)
        return super().step(action)


def _forgetful() -> Forgetful:
    return Forgetful(CartPoleEnv())


gym.register("Forgetful-v0", _forgetful, max_episode_steps=500)
gym.register("Signalling-v0", SignallingCartPole, max_episode_steps=500)
gym.register("KilledWhenNew-v0", KilledWhenNew, max_episode_steps=500)
gym.register("FirstFails-v0", FirstFails, max_episode_steps=500)
gym.register("Unsavable-v0", Unsavable, max_episode_steps=500)
gym.register("Exiting-v0", Exiting, max_episode_steps=500)
gym.register("Forking-v0", Forking, max_episode_steps=500)
gym.register("Hoarding-v0", Hoarding, max_episode_steps=500)
gym.register("Talking-v0", Talking, max_episode_steps=500)
gym.register("Tracing-v0", Tracing, max_episode_steps=500)
gym.register("Endless-v0", CartPoleEnv)
