"""Which parameters of a policy are frozen: those that `optimizer.frozen` names, and those that hooks freeze."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from surefoot.errors import ConfigError, PolicyError
from surefoot.settings.registry import nearest
from surefoot.storage.saved import Saved

SETTING = "optimizer.frozen"
_REMEMBERED = "_surefoot_learnable"


class Frozen:
    """Reads `requires_grad` of a module's parameters, so that anybody can freeze them at any time.

    Its state is what hooks froze and thawed in addition to the config. A rollback does not restore it: hooks do not
    repeat what they did at a certain iteration.
    """

    is_optional = True  # checkpoints of earlier versions do not have it

    def __init__(self, module: nn.Module, patterns: Sequence[str] = ()) -> None:
        self._module, self._patterns = module, patterns
        self.named = learnable(module)
        self._all = list(module.parameters())
        self._configured = _matching(patterns, module, self.named)
        for name in self._configured:
            self.named[name].requires_grad_(False)

    def flags(self) -> list[bool]:
        """Whether each parameter of the module learns now."""
        return [parameter.requires_grad for parameter in self._all]

    def learning(self) -> set[str]:
        """The names of those that learn now."""
        names = {name for name, parameter in self.named.items() if parameter.requires_grad}
        if not names:
            raise PolicyError(
                f"every parameter of the policy is frozen ({SETTING} or requires_grad): nothing can be trained"
            )
        if len(names) < sum(self.flags()):
            raise PolicyError(
                "a parameter that was frozen when the policy was built cannot learn later; build it with requires_grad"
                f" and freeze it with {SETTING}, or with a hook in begin"
            )
        return names

    def state(self) -> dict[str, Any]:
        """What hooks froze and thawed."""
        return frozen_now(self._module, self._patterns)

    def check_state(self, saved: Saved) -> None:
        """Refuse names of other parameters."""
        for kind in ("frozen", "thawed"):
            for entry in saved[kind].items():
                if entry.text() not in self.named:
                    raise entry.wrong("the name of a parameter that learns")

    def load_state(self, state: dict[str, Any]) -> None:
        """Freeze and thaw as hooks did; what the config says now comes first."""
        frozen = (self._configured - set(state["thawed"])) | set(state["frozen"])
        for name, parameter in self.named.items():
            parameter.requires_grad_(name not in frozen)


def frozen_now(module: nn.Module, patterns: Sequence[str]) -> dict[str, Any]:
    """Names of parameters that are frozen in addition to the config, and of those of the config that were thawed."""
    named = learnable(module)
    configured = _matching(patterns, module, named)
    learning = {name for name, parameter in named.items() if parameter.requires_grad}
    return {
        "frozen": [name for name in named if name not in learning | configured],
        "thawed": [name for name in named if name in learning & configured],
    }


def learnable(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that learned at the first call, when the policy was built: some of them may be frozen since."""
    named = dict(module.named_parameters())
    names = vars(module).setdefault(_REMEMBERED, [name for name, one in named.items() if one.requires_grad])
    return {name: named[name] for name in names if name in named}


def parts_of(module: nn.Module) -> Callable[[str], str]:
    """A function from the name of a parameter to its part of the network, which policies tell."""
    part_of: Callable[[str], str] = getattr(module, "part_of", lambda parameter: parameter.partition(".")[0])
    return part_of


def _matching(patterns: Sequence[str], module: nn.Module, named: Iterable[str]) -> frozenset[str]:
    """The parameters that some patterns name: by a part of the network, a module, or their own name."""
    part_of, known, found, problems = parts_of(module), list(dict(module.named_parameters())), set[str](), []
    for pattern in patterns:
        matched = {
            name
            for name in known
            if any(fnmatchcase(one, pattern) for one in (part_of(name), name)) or name.startswith(f"{pattern}.")
        }
        if not matched:
            parts = list(dict.fromkeys(part_of(name) for name in known))
            problems.append(
                f"{SETTING}: '{pattern}' matches no part and no parameter{nearest(pattern, [*parts, *known])}"
                f" (parts: {', '.join(parts)}; parameters: {', '.join(known)})"
            )
        found |= matched
    if problems:
        raise ConfigError(problems)
    return frozenset(found & set(named))
