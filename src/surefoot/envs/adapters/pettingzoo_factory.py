"""Creates envs from the name of a module with `parallel_env`, such as `mpe2.simple_spread_v3`."""

import difflib
import importlib
import pkgutil
from dataclasses import dataclass
from importlib.util import find_spec
from types import ModuleType

from surefoot.envs.adapters.pettingzoo_env import ParallelEnv
from surefoot.errors import EnvError
from surefoot.machine.extras import install_hint
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.settings.config import EnvConfig


@dataclass(frozen=True)
class PettingZooFactory:
    """Creates the parallel env of a module with the configured arguments; it is sent to other processes by name."""

    module: str
    config: EnvConfig

    def __call__(self) -> ParallelEnv:
        """Create one env."""
        limit = self.config.max_episode_steps
        kwargs = self.config.kwargs | ({} if limit is None else {"max_cycles": limit})
        try:
            return imported(self.module).parallel_env(**kwargs)
        except TypeError as error:
            raise EnvError(
                f"environment 'pettingzoo:{self.module}' does not accept the arguments {kwargs} (env.kwargs, and"
                f" env.max_episode_steps as max_cycles): {error}"
            ) from error


def pettingzoo_factory(module: str, config: EnvConfig) -> PettingZooFactory:
    """A factory for the parallel env of a module; an unknown module is rejected with the nearest known one."""
    if not hasattr(imported(module), "parallel_env"):
        raise EnvError(f"module '{module}' has no parallel_env(); use one that has, such as 'mpe2.simple_spread_v3'")
    return PettingZooFactory(module, config)


def imported(module: str) -> ModuleType:
    """The module, or a typed error that names what is missing."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        name = f"environment 'pettingzoo:{module}'"
        if missing.partition(".")[0] == "pettingzoo" and find_spec("pettingzoo") is None:
            raise EnvError(f"{name} requires PettingZoo; {install_hint('pettingzoo')}") from error
        if missing == module or module.startswith(f"{missing}."):
            raise EnvError(f"no module named '{missing}'{_suggestion(missing) or _remedy(missing)}") from error
        raise EnvError(f"{name} requires the package '{missing}', which is not installed; install it") from error
    except BaseException as error:
        let_interrupts_through(error)
        cause = str(error).replace("\n", " ") if isinstance(error, ImportError) else brief(error)
        raise EnvError(f"environment 'pettingzoo:{module}' could not be imported: {cause}") from error


def _remedy(missing: str) -> str:
    package = missing.partition(".")[0]
    if package != missing:
        return ""
    return f"; install the package '{package}' (for PettingZoo and MPE2, {install_hint('pettingzoo')})"


def _suggestion(module: str) -> str:
    """A "did you mean" clause with the nearest module in the same package."""
    parent, _, name = module.rpartition(".")
    if not parent:
        return ""
    siblings = [found.name for found in pkgutil.iter_modules(getattr(importlib.import_module(parent), "__path__", []))]
    close = difflib.get_close_matches(name, siblings, n=1)
    return f"; did you mean '{parent}.{close[0]}'?" if close else ""
