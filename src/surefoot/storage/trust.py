"""Which code a checkpoint may make Surefoot import, and where it may lead: only what its user has named as well."""

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Trust = bool | Collection[str]
"""True for everything, or the names (`module:Name`, env ids, paths, addresses) that the user trusts."""

WANTS_TO_IMPORT = "the checkpoint wants to import"
"""How errors about code that is not trusted begin; validation keeps their texts alone."""
_trust: ContextVar[Trust] = ContextVar("trust", default=True)


@contextmanager
def trusting(trust: Trust) -> Iterator[None]:
    """Inside, kinds outside the package are imported only if they are trusted."""
    token = _trust.set(trust)
    try:
        yield
    finally:
        _trust.reset(token)


def is_trusted(name: str, trust: Trust) -> bool:
    """Whether the user trusts a name."""
    return trust is True or (trust is not False and name in trust)


def may_import(name: str, trust: Trust | None = None) -> bool:
    """Whether `module:Name` is trusted, or was imported already: then nothing new runs."""
    if is_trusted(name, _trust.get() if trust is None else trust):
        return True
    module, _, attribute = name.partition(":")
    return module in sys.modules and attribute in vars(sys.modules[module])


def names_in(raw: Any) -> set[str]:
    """All strings in a config of the user's own: the names that it trusts."""
    if isinstance(raw, str):
        return {raw}
    if isinstance(raw, Mapping):
        return {name for pair in raw.items() for inner in pair for name in names_in(inner)}
    return {name for inner in raw for name in names_in(inner)} if isinstance(raw, list | tuple) else set()
