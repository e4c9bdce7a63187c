"""Envs that do what envs do: raise, die, hang. Each fault happens in one env, at one step of its life."""

import os
import time
from pathlib import Path
from typing import Any

from tests.envs.tasks import CounterEnv


class UnrulyEnv(CounterEnv):
    """Misbehaves in `where` ("constructor", "reset" or "step"), the step at step `at` of its life, in the way `how`.

    With `once`, a file, it does so only if that is not there yet, and makes it: the env that replaces it behaves.
    """

    def __init__(self, where: str, how: str, at: int = 0, once: Path | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._where, self._how, self._at, self._once = where, how, at, once
        self._age = 0
        self._misbehave("constructor")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if self._age >= self._at:
            self._misbehave("reset")
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        if self._age == self._at:
            self._misbehave("step")
        self._age += 1
        return super().step(action)

    def _misbehave(self, where: str) -> None:
        if where != self._where or (self._once is not None and self._once.exists()):
            return
        if self._once is not None:
            self._once.touch()
        match self._how:
            case "raise":
                raise RuntimeError(f"the {where} is broken")
            case "abort":
                os.abort()
            case "exit":
                os._exit(7)
            case "sleep":
                time.sleep(3600)
            case "spin":
                while True:
                    pass
