"""Preset < YAML < command line: merge raw settings, validate once, report every problem together."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from surefoot.errors import ConfigError
from surefoot.output.quoted import quoted
from surefoot.settings.config import Config, key_types, known_keys, part_of
from surefoot.settings.old_settings import OLD_NAMES, renewed
from surefoot.settings.parts import PartOf, PartsOf, Raw, Section, as_mapping, settings_class
from surefoot.settings.registry import nearest
from surefoot.settings.strict_yaml import parse_yaml
from surefoot.settings.synonyms import elsewhere_called
from surefoot.storage.files import read_regular

__all__ = ["Raw", "build_config", "build_section", "by_name", "merge", "read_yaml", "to_yaml"]
S = TypeVar("S", bound=Section)
_MOST_BYTES = 2**24
"""Of a config file."""


def read_yaml(path: Path) -> Raw:
    """A YAML mapping from a file, or a typed error that names the file."""
    try:
        raw = parse_yaml(read_regular(path, _MOST_BYTES).decode())
    except OSError as error:
        raise ConfigError(f"cannot read the config file {path}: {error.strerror}") from error
    except ValueError as error:  # also text that is not UTF-8
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must contain sections such as 'ppo:', not a {type(raw).__name__}")
    return raw


def merge(*layers: Mapping[str, Any]) -> Raw:
    """Later layers win, key by key; dotted names such as `section.key` and `policy.memory.kind` work too."""
    merged: Raw = {}
    for layer in layers:
        for section, value in renewed(_nested(layer)).items():
            merged[section] = _combined(merged.get(section), value, (section,))
    return {section: value for section, value in merged.items() if value is not None or section not in key_types()}


def _nested(layer: Mapping[str, Any]) -> Raw:
    """Dotted names as nested mappings; the more specific name wins, regardless of order."""
    nested: Raw = {}
    for name, value in sorted(layer.items(), key=_depth):
        path = _path(str(name))
        for key in reversed(path[1:]):
            value = {key: value}
        nested[path[0]] = _combined(nested.get(path[0]), value, (path[0],))
    return nested


def _depth(item: tuple[str, Any]) -> int:
    return str(item[0]).count(".")


def _path(name: str) -> list[str]:
    """The keys of a dotted name. Knobs of named parts keep their dot: `schedules.penalty.weight`."""
    section, *rest = name.split(".")
    if section == "schedules" and len(rest) > 1 and rest[0] not in Config().knobs():
        rest[:2] = [".".join(rest[:2])]
    return [section, *rest]


def _combined(before: Any, value: Any, path: tuple[str, ...]) -> Any:
    """A value merged into an earlier one: sections and parts keep the entries that it does not change."""
    part = part_of(path) if len(path) <= 2 else None
    if isinstance(part, PartOf):
        return _combined_part(before, value, part)
    if isinstance(part, PartsOf) and isinstance(value, Mapping):
        earlier = before if isinstance(before, Mapping) else {}
        named = {str(name): _combined_part(earlier.get(name), one, part.of(str(name))) for name, one in value.items()}
        return {**earlier, **named}
    is_mapping = path[0] in key_types() and len(path) == 1
    if is_mapping and value is None:  # a section header with nothing below it
        return before
    if is_mapping and before is not None and not isinstance(before, Mapping):
        return before  # a section that is not a mapping is reported, not replaced
    if is_mapping and isinstance(value, Mapping):
        earlier = before or {}
        return {**earlier, **{key: _combined(earlier.get(key), one, (*path, str(key))) for key, one in value.items()}}
    return value


def _combined_part(before: Any, value: Any, part: PartOf) -> Any:
    """A bare kind replaces a part that has a kind; a mapping changes entries, a new kind keeps those it also has."""
    earlier = as_mapping(before)
    if isinstance(value, str) and isinstance(earlier, Mapping) and "kind" not in earlier:
        value = as_mapping(value)
    if not isinstance(value, Mapping) or not isinstance(earlier, Mapping):
        return value
    kind = value.get("kind", earlier.get("kind", part.default))
    if kind != earlier.get("kind", part.default):
        try:
            known: Iterable[str] = settings_class(part.package, kind).model_fields
        except ConfigError:  # reported when the whole config is validated
            known = ()
        earlier = {key: one for key, one in earlier.items() if key in known}
    return {**earlier, **value}


def by_name(settings: Mapping[str, Any]) -> Raw:
    """Settings by bare key (`gamma=0.9`), by `section.key`, or as whole sections, in one form."""
    layers: list[Mapping[str, Any]] = []
    for name, value in sorted(settings.items(), key=_depth):
        first = name.partition(".")[0]
        homes = [] if first in Config.model_fields else _homes(name)
        if len(homes) > 1:
            raise ConfigError(f"{name}: ambiguous; use one of {', '.join(homes)}")
        layers.append({homes[0] if homes else name: value})
    return merge(*layers)


def _homes(name: str) -> list[str]:
    first, dot, rest = name.partition(".")
    return [f"{key}{dot}{rest}" for key in (*known_keys(), *OLD_NAMES) if key.rpartition(".")[2] == first]


def build_config(*layers: Mapping[str, Any]) -> Config:
    """The validated config, or one ConfigError that lists everything wrong with it; the preset is not looked up."""
    merged = merge(*layers)
    merged.pop("preset", None)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        problems = [text for problem in error.errors() for text in _explain(dict(problem))]
        raise ConfigError(problems + _problems_of_the_rest(merged, error)) from error
    problems = config.cross_problems()
    if problems:
        raise ConfigError(problems)
    return config


def rebuilt(config: Config, *layers: Mapping[str, Any]) -> Config:
    """A config with further layers, checked again."""
    return build_config(config.model_dump(mode="json"), *layers)


def build_section(cls: type[S], raw: Mapping[str, Any], name: str, inner: Iterable[str] = ()) -> S:
    """A validated section that is not part of the config, or one ConfigError that lists everything wrong with it.

    `inner` are keys of sections inside of it, for hints.
    """
    try:
        return cls.model_validate(dict(raw))
    except ValidationError as error:
        known = {"known": [*cls.model_fields, *inner], "elsewhere": {}}
        raise ConfigError([text for one in error.errors() for text in _explain({**one, **known}, (name,))]) from error


def _problems_of_the_rest(merged: Raw, error: ValidationError) -> list[str]:
    """Problems between the settings that are valid on their own, when others are not."""
    bad = {".".join(str(word) for word in problem["loc"][:2]) for problem in error.errors()}
    sound = {
        section: {key: value for key, value in keys.items() if f"{section}.{key}" not in bad}
        for section, keys in merged.items()
        if section not in bad and isinstance(keys, Mapping)
    }
    sound.pop("schedules", None)  # they may name knobs of parts that are wrong themselves
    problems = Config.model_validate(sound).cross_problems()
    return [problem for problem in problems if not any(key in problem for key in bad)]


def _explain(problem: Mapping[str, Any], where: Sequence[Any] = ()) -> list[str]:
    """One line per problem; those inside a part come with it."""
    location = (*where, *problem["loc"])
    path, context = ".".join(str(one) for one in location), problem.get("ctx", {})
    if "errors" in context:
        return [text for one in context["errors"] for text in _explain(one, location)]
    if problem["type"] == "unknown_kind":
        text = context.get("problem", problem["msg"])
        return [text if text.startswith(path) else f"{path}: {text}"]
    if problem["type"] == "extra_forbidden":
        what, hint = "section" if len(location) == 1 else "key", _suggestion(path, problem)
        return [f"{path}: unknown {what}{hint}"]
    message = problem["msg"].removeprefix("Value error, ").replace("unable to interpret input", "true or false")
    knob = path.rpartition(".")[2]
    is_function = callable(problem["input"]) and knob in Config().knobs()
    schedule = f"; to change it during a run, set schedules.{knob}" if is_function else ""
    return [f"{path}: {message[0].lower()}{message[1:]} (got {quoted(problem['input'])}){schedule}"]


def _suggestion(path: str, problem: Mapping[str, Any]) -> str:
    """The nearest setting of the part's kind, else of its other kinds; outside of parts, the nearest of all keys."""
    keys = known_keys()
    bare = path.rpartition(".")[2]
    if foreign := elsewhere_called(bare):
        return foreign
    if "known" in problem:
        return nearest(bare, problem["known"]) or _elsewhere(bare, problem["elsewhere"])
    same_name = [key for key in keys if key.partition(".")[2] == bare]
    if same_name:
        return f"; did you mean '{same_name[0]}'?"
    if "." not in path:
        return nearest(path, Config.model_fields) or nearest(path, (key.partition(".")[2] for key in keys))
    return nearest(path, keys)


def _elsewhere(key: str, kinds_by_setting: Mapping[str, Sequence[str]]) -> str:
    close = get_close_matches(key, list(kinds_by_setting), n=1, cutoff=0.6)
    return f"; '{close[0]}' is a setting of the kinds {', '.join(kinds_by_setting[close[0]])}" if close else ""


def to_yaml(config: Config) -> str:
    """The complete config as YAML; `--config` reads it back, and adds no preset."""
    return yaml.safe_dump({"preset": "none", **config.model_dump(mode="json")}, sort_keys=False)
