"""All hooks of a run, called in order."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from surefoot.data.records import IterationReport, Rollout
from surefoot.data.specs import ArraySpec
from surefoot.errors import HookError, SurefootError
from surefoot.machine.torch_defaults import restore_defaults
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.rollout.fields import HOOK, NAMED, Field
from surefoot.storage.saved import Saved
from surefoot.storage.state import check_present, load_present

if TYPE_CHECKING:
    from surefoot.training.hooks import Hook


class HookGroup:
    """All hooks of a run, called in order; an exception in a hook becomes a HookError that names it."""

    def __init__(self, named: Mapping[str, "Hook"]) -> None:
        self.named = dict(named)
        self._extras: dict[str, Tensor] = {}

    def begin(self) -> None:
        """See `Hook.begin`."""
        self._call("begin")

    def before_rollout(self) -> None:
        """See `Hook.before_rollout`."""
        self._call("before_rollout")

    def after_rollout(self, rollout: Rollout) -> Rollout:
        """See `Hook.after_rollout`; returns the rollout with the extras of the hooks."""
        writers = {name: hook for hook in self.named for name in self._add_extras(hook, rollout)}
        if writers:
            rollout = replace(rollout, learned_extras=(*rollout.learned_extras, *writers))
        self._call("after_rollout", rollout)
        for name, hook in writers.items():
            _check_extra(hook, name, rollout.extras[name], self._extras[name])
        return rollout

    def _add_extras(self, hook: str, rollout: Rollout) -> Iterable[str]:
        """The names of a hook's extras, which are zero now."""
        if not self.named[hook].overrides("extras"):
            return ()
        specs: dict[str, ArraySpec] = _call(hook, self.named[hook], "extras")
        for name, spec in specs.items():
            if name in rollout.extras or name in NAMED:
                raise HookError(f"hook '{hook}' declares the extra '{name}', which rollouts already have; rename it")
            if name not in self._extras:  # once: a rollout reuses the tensors of the last one
                self._extras[name] = Field(name, spec, HOOK).allocate(*rollout.reward.shape)
            rollout.extras[name] = self._extras[name].zero_()
        return specs

    def after_iteration(self, report: IterationReport) -> None:
        """See `Hook.after_iteration`."""
        self._call("after_iteration", report)

    def end(self) -> None:
        """See `Hook.end`."""
        self._call("end")

    def state(self) -> dict[str, Any]:
        """The state of each hook that has one, by name."""
        return {name: state for name, hook in self.named.items() if (state := _call(name, hook, "state"))}

    def check_state(self, saved: Saved) -> None:
        """Check the states of the hooks."""
        check_present(self.named, saved)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Load the states by name; a hook without a saved state keeps its initial one."""
        load_present(self.named, state)

    def _call(self, method: str, *arguments: Any) -> None:
        for name, hook in self.named.items():
            if hook.overrides(method):  # else it cannot fail, and there is nothing to restore
                _call(name, hook, method, *arguments)


def _call(name: str, hook: "Hook", method: str, *arguments: Any) -> Any:
    try:
        return getattr(hook, method)(*arguments)
    except SurefootError:
        raise
    except BaseException as error:  # a hook may even call sys.exit
        let_interrupts_through(error)
        raise HookError(f"hook '{name}' raised an exception in {method}: {brief(error)}") from error
    finally:
        restore_defaults()


def _check_extra(hook: str, name: str, given: Tensor, expected: Tensor) -> None:
    if not isinstance(given, Tensor) or (given.shape, given.dtype) != (expected.shape, expected.dtype):
        wanted = f"a tensor of {expected.dtype} and shape {list(expected.shape)}"
        raise HookError(f"hook '{hook}' must write {wanted} to the extra '{name}', as Hook.extras declares it")
    if given.is_floating_point() and not given.isfinite().all():
        raise HookError(f"hook '{hook}' wrote numbers that are not finite to the extra '{name}'")
