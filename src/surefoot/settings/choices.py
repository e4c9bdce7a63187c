"""The values that a setting can have, for listings; without importing the parts, which would import torch."""

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from surefoot.settings.parts import PartOf, PartsOf
from surefoot.settings.registry import AUTO

_REGISTERED = re.compile(r'^@\w+\.register\("(\w+)"\)', re.MULTILINE)


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The values of an enumeration, or the kinds of a part; empty for numbers and names."""
    for mark in field.metadata:
        part = mark.func if isinstance(mark, BeforeValidator) else None
        if isinstance(part, PartOf | PartsOf):
            return (*((AUTO,) if part.default == AUTO else ()), *kinds_in(part.package))
    return _literals(field.annotation)


def _literals(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(map(str, get_args(annotation)))
    return tuple(value for one in get_args(annotation) for value in _literals(one)) if _is_optional(annotation) else ()


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, UnionType)


@cache
def kinds_in(package: str) -> tuple[str, ...]:
    """The kinds that the files of a package register, read from their text."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    files = Path(spec.origin).parent.glob("*.py")
    return tuple(sorted(kind for file in files for kind in _REGISTERED.findall(file.read_text(encoding="utf-8"))))
