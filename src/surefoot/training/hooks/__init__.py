"""Hooks attach to the training loop: they watch it, set up environments, add metrics or stop it; one file per hook."""

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.data.records import IterationReport, Progress, Rollout
from surefoot.data.specs import ArraySpec
from surefoot.envs.protocol import VecEnv
from surefoot.errors import ConfigError
from surefoot.machine.ranks import Ranks
from surefoot.output.quoted import quoted
from surefoot.policies.policy import Policy
from surefoot.rollout.actors import Actors
from surefoot.settings.config import Config
from surefoot.settings.parts import PartSettings
from surefoot.settings.registry import Registry


class RunContext(Protocol):
    """The part of a run that a hook can access."""

    config: Config
    ranks: Ranks
    """The processes that train together; every hook runs in each of them, with the rows of its process."""
    stop_reason: str
    """Why the run ends after this iteration, if it does."""

    @property
    def policy(self) -> Policy:
        """The policy that is trained."""

    @property
    def envs(self) -> VecEnv:
        """The training environments: their `parameters` can be set between rollouts."""

    @property
    def actors(self) -> Actors:
        """The policies that act in each row: other policies can be added and assigned."""

    @property
    def progress(self) -> Progress:
        """Steps and iterations so far."""

    @property
    def is_ending(self) -> bool:
        """Whether this iteration is the last one."""

    def stop(self, reason: str) -> None:
        """End the run after this iteration; it is saved as if it had finished."""

    def save(self) -> None:
        """Save a checkpoint after this iteration."""

    def load_policy(self, model: Path | str) -> Policy:
        """A trained policy, frozen: of a .safetensors file, a run directory or `zoo:NAME`; for `actors.add`."""


class Hook:
    """Base class of hooks: override the methods you need. `self.run` is available from `begin` on.

    Hooks in the config are built from their settings; hooks passed to `learn` can have any constructor. `state()` is
    saved in every checkpoint under the name of the hook and passed to `load_state` before `begin`.
    """

    run: RunContext

    def __init__(self, settings: PartSettings | None = None) -> None:
        pass

    def extras(self) -> dict[str, ArraySpec]:
        """Specs of fields that the hook adds to rollouts and minibatches, by name, each for one row.

        `after_rollout` writes them: `rollout.extras[name]`, zeros `[T, N, ...]` at first.
        """
        return {}

    def begin(self) -> None:
        """Before the first iteration of this process."""

    def before_rollout(self) -> None:
        """Before each rollout: set parameters of the environments here."""

    def after_rollout(self, rollout: Rollout) -> None:
        """After each rollout, before the update; the next rollout reuses its tensors."""

    def after_iteration(self, report: IterationReport) -> None:
        """After each update. Entries added to `report.metrics` are logged."""

    def end(self) -> None:
        """After the last iteration, before the final checkpoint."""

    def overrides(self, method: str) -> bool:
        """Whether the hook has a method of its own; those of this class do nothing."""
        return getattr(type(self), method) is not getattr(Hook, method) or method in vars(self)

    def _is_last(self, report: IterationReport) -> bool:
        return report.progress.is_done or (hasattr(self, "run") and self.run.is_ending)

    def state(self) -> dict[str, Any]:
        """The state to save in checkpoints: numbers, strings, lists, arrays and tensors."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""


class FunctionHook(Hook):
    """A function of the report, or of the run and the report, called after each iteration.

    The run ends after an iteration for which it returns False, or a text, which is the reason.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function, self._takes_run = function, _takes_run(function)

    def after_iteration(self, report: IterationReport) -> None:
        answer = self._function(self.run, report) if self._takes_run else self._function(report)
        if isinstance(answer, str) and answer:
            self.run.stop(answer)
        elif isinstance(answer, bool | np.bool_) and not answer:
            self.run.stop(f"the hook {getattr(self._function, '__name__', 'function')} returned False")


HookLike = Hook | Callable[[IterationReport], Any] | Callable[[RunContext, IterationReport], Any]


def _takes_run(function: Callable[..., Any]) -> bool:
    """Whether a function needs two arguments; those with defaults are its own."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in by_place and one.default is inspect.Parameter.empty]
    takes_any = any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters)
    if len(needed) > 2 or (not needed and not takes_any and not any(one.kind in by_place for one in parameters)):
        name = getattr(function, "__name__", quoted(function))
        raise ConfigError(
            [f"hooks: {name} has {len(needed)} parameters; define it as function(report) or function(run, report)"]
        )
    return len(needed) == 2


@cache
def function_hook(function: Callable[..., Any]) -> type[Hook]:
    """A function as a class of hooks, for a config that names it."""

    class NamedFunction(FunctionHook):
        def __init__(self, settings: PartSettings | None = None) -> None:
            super().__init__(function)

    return NamedFunction


hooks: Registry[Hook] = Registry("hook", "surefoot.training.hooks", base="Hook", of_function=function_hook)


def named_hooks(config: Config, given: Sequence[Any]) -> dict[str, Hook]:
    """The configured hooks by name, then the given ones by the name of their class or function."""
    named: dict[str, Hook] = {name: hooks[part.kind](part) for name, part in config.hooks.items()}
    if isinstance(given, Hook) or callable(given):
        given = [given]
    if not isinstance(given, Sequence):
        raise ConfigError([f"hooks: pass a list of hooks, not {quoted(given)}"])
    for one in given:
        if not isinstance(one, Hook) and not callable(getattr(one, "after_iteration", one)):
            raise ConfigError([f"hooks: pass Hook objects or functions of the report, not {quoted(one)}"])
        if isinstance(one, type):
            raise ConfigError([f"hooks: pass an object, {one.__name__}(), not the class {one.__name__}"])
        is_function = not isinstance(one, Hook)
        stem = getattr(one, "__name__", type(one).__name__)
        name, number = stem, 1
        while name in named:
            number += 1
            name = f"{stem}-{number}"
        named[name] = FunctionHook(getattr(one, "after_iteration", one)) if is_function else one
    return named


class Every:
    """Due once each time the step counter passes a multiple of an interval; never for interval 0."""

    def __init__(self, interval: int, start: int = 0) -> None:
        self._interval, self._last = interval, start

    def passes(self, step: int) -> bool:
        """Whether a multiple was passed since the last one that counted."""
        return self._interval != 0 and step // self._interval != self._last // self._interval

    def is_due(self, step: int) -> bool:
        """Whether a multiple was passed since this was last true."""
        if not self.passes(step):
            return False
        self._last = step
        return True
