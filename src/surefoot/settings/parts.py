"""Parts: kinds that declare their own settings, named in the config as `kind` or as `{kind: ..., setting: ...}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from surefoot.errors import ConfigError
from surefoot.settings.registry import AUTO, Registry

Raw = dict[str, Any]
_REGISTERED = re.compile(r'^@\w+\.register\("(\w+)"\)', re.MULTILINE)


class Section(BaseModel):
    """Frozen; refuses unknown keys, NaN and infinity (except inside env.kwargs)."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants", validate_default=True
    )


class PartSettings(Section):
    """Settings of one kind of part. A part declares its own as a nested class `Settings(PartSettings)`."""

    kind: str = ""


@dataclass(frozen=True)
class KnobMark:
    """Marks a number that schedules may change during a run."""


Knob = Annotated[float, Field(ge=0), KnobMark()]


@dataclass(frozen=True)
class PartOf:
    """Validates a part of the registry in `package`: finds its kind, then checks its settings."""

    package: str
    default: str = ""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, PartSettings) and type(value) is not PartSettings:
            return value
        raw = as_mapping(value.model_dump() if isinstance(value, PartSettings) else value)
        if not isinstance(raw, Mapping):
            raise PydanticCustomError("part", "must be a kind or a mapping with the key 'kind'")
        raw = {"kind": self.default, **raw}
        try:
            cls = settings_class(self.package, raw["kind"])
            return cls.model_validate(raw)
        except ValidationError as error:
            hints = {"known": list(cls.model_fields), "elsewhere": _kinds_by_setting(self.package)}
            problems = [{**problem, **hints} for problem in error.errors()]
            raise PydanticCustomError("part", "has wrong settings", {"errors": problems}) from error
        except ConfigError as error:
            problem = error.problems[0].encode(errors="backslashreplace").decode()  # bytes of the command line
            raise PydanticCustomError("unknown_kind", "{problem}", {"problem": problem}) from error


@dataclass(frozen=True)
class PartsOf:
    """Validates parts by name: `{name: {kind: ..., setting: ...}}`; the kind is the name unless there is a default."""

    package: str
    default: str = ""

    def of(self, name: str) -> PartOf:
        """The validator of the part with this name."""
        return PartOf(self.package, self.default or name)

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise PydanticCustomError("part", "must be a mapping from names to parts")
        named, errors = {}, []
        for name, one in value.items():
            if one is None:  # removes what an earlier layer named
                continue
            try:
                named[str(name)] = self.of(str(name))(one)
            except PydanticCustomError as error:
                details = (error.context or {}).get("errors")
                nested = details or [{"type": error.type, "loc": (), "msg": error.message(), "input": one}]
                errors += [{**problem, "loc": (str(name), *problem["loc"])} for problem in nested]
        if errors:
            raise PydanticCustomError("part", "has wrong settings", {"errors": errors})
        return named


def as_mapping(value: Any) -> Any:
    """`encoder: conv` is short for `encoder: {kind: conv}`."""
    return {"kind": value} if isinstance(value, str) else value


def settings_class(package: str, kind: Any) -> type[PartSettings]:
    """The settings of a kind; `auto` takes those of all kinds that it may choose."""
    registry = Registry.of(package)
    if kind == AUTO and registry.automatic:
        return _joined(_unique(_settings_of(registry[name]) for name in registry.automatic))
    return _settings_of(registry[str(kind)])


@cache
def _joined(classes: tuple[type[PartSettings], ...]) -> type[PartSettings]:
    """Cached, because settings of different classes never compare equal."""
    return type("Settings", classes, {})


def chosen(settings: PartSettings, package: str, kind: str) -> PartSettings:
    """The settings of the kind that `auto` chose."""
    cls = settings_class(package, kind)
    given = {name: getattr(settings, name) for name in cls.model_fields if name != "kind" and hasattr(settings, name)}
    return cls(kind=kind, **given)


def _kinds_by_setting(package: str) -> dict[str, list[str]]:
    """Which built-in kinds have a setting of this name."""
    found: dict[str, list[str]] = {}
    for kind in Registry.of(package).names():
        for key in _settings_of(Registry.of(package)[kind]).model_fields:
            found.setdefault(key, []).append(kind)
    return found


def _settings_of(cls: type) -> type[PartSettings]:
    found: type[PartSettings] = getattr(cls, "Settings", PartSettings)
    return found


def _unique(classes: Any) -> tuple[type[PartSettings], ...]:
    found = dict.fromkeys(cls for cls in classes if cls is not PartSettings)
    return tuple(found) or (PartSettings,)


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
