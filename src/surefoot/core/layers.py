"""Preset < YAML < command line: merge raw settings, validate once, report every problem together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from surefoot.core.config import Config, EncoderConfig, Section, key_types, known_keys
from surefoot.core.errors import ConfigError
from surefoot.core.registry import nearest

Raw = dict[str, Any]


def read_yaml(path: Path) -> Raw:
    """A YAML mapping from a file, or a typed error that names the file."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"cannot read the config file {path}: {error.strerror}"]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        cause = str(error).replace("\n", " ")
        raise ConfigError([f"{path} is not valid YAML: {cause}"]) from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError([f"{path} must hold sections such as 'ppo:', not a {type(raw).__name__}"])
    return raw


def merge(*layers: Mapping[str, Any]) -> Raw:
    """Later layers win, key by key within each section; `section.key` and `policy.memory.kind` are understood too."""
    merged: Raw = {}
    for layer in layers:
        for name, value in sorted(layer.items(), key=_depth):
            section, dot, key = str(name).partition(".")
            present = merged.get(section)
            addition = _entry(section, key, value) if dot else value
            if addition is None and section in key_types():
                continue  # a section header with nothing below it
            if dot and present is not None and not isinstance(present, dict):
                continue  # a section that is no mapping is reported, not replaced
            if isinstance(addition, Mapping):
                before = present if isinstance(present, dict) else {}
                merged[section] = before | {key: _within(section, key, before, one) for key, one in addition.items()}
            else:
                merged[section] = addition
    return merged


def _depth(item: tuple[str, Any]) -> int:
    """What is inside a key comes after the key itself, in whatever order both are given."""
    return str(item[0]).count(".")


def _entry(section: str, key: str, value: Any) -> Raw:
    """One key of a section, which may be of a section within it: `memory.layers`."""
    outer, dot, inner = key.partition(".")
    return {outer: {inner: value}} if dot and _inner_section(section, outer) is not None else {key: value}


def _within(section: str, key: str, before: Raw, value: Any) -> Any:
    """A section within a section keeps the entries that are not changed; a kind alone is one with no more to say."""
    if not isinstance(value, Mapping) or _inner_section(section, key) is None:
        return value
    present = before.get(key, {})
    present = {"kind": present} if isinstance(present, str) else present
    return {**present, **value} if isinstance(present, Mapping) else value


def _inner_section(section: str, key: str) -> type[Section] | None:
    """The section that a key of a section is, such as `policy.memory`."""
    cls = key_types().get(section)
    found = cls.model_fields[key].annotation if cls is not None and key in cls.model_fields else None
    return found if isinstance(found, type) and issubclass(found, Section) else None


def by_name(settings: Mapping[str, Any]) -> Raw:
    """Settings by bare key (`gamma=0.9`), by `section.key`, or as whole sections, brought to one form."""
    homes = {key.partition(".")[2]: key for key in known_keys()}
    layers: list[Mapping[str, Any]] = []
    for name, value in sorted(settings.items(), key=_depth):
        is_section = name.partition(".")[0] in key_types()
        layers.append({name if is_section else homes.get(name, name): value})
    return merge(*layers)


def build_config(*layers: Mapping[str, Any]) -> Config:
    """The validated config, or one ConfigError that lists everything wrong with it."""
    merged = merge(*layers)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        problems = [_explain(dict(problem)) for problem in error.errors()]
        raise ConfigError(problems + _problems_of_the_rest(merged, error)) from error
    problems = config.cross_problems()
    if problems:
        raise ConfigError(problems)
    return config


def _problems_of_the_rest(merged: Raw, error: ValidationError) -> list[str]:
    """What is wrong between keys that are fine by themselves, while others are not."""
    bad = {".".join(str(part) for part in problem["loc"][:2]) for problem in error.errors()}
    sound = {
        section: {key: value for key, value in keys.items() if f"{section}.{key}" not in bad}
        for section, keys in merged.items()
        if section not in bad
    }
    problems = Config.model_validate(sound).cross_problems()
    return [problem for problem in problems if not any(key in problem for key in bad)]


def _explain(problem: Mapping[str, Any]) -> str:
    location: Sequence[Any] = problem["loc"]
    path = ".".join(str(part) for part in location)
    if problem["type"] == "extra_forbidden":
        return f"{path}: unknown {'section' if len(location) == 1 else 'key'}{_suggestion(path, location)}"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{path}: {message[0].lower()}{message[1:]} (got {problem['input']!r})"


def _suggestion(path: str, location: Sequence[Any]) -> str:
    keys = known_keys()
    bare = path.rpartition(".")[2]
    if len(location) > 2:  # inside a section within a section, or one of policy.encoders
        return nearest(bare, (_inner_section(*location[:2]) or EncoderConfig).model_fields)
    same_name = [key for key in keys if key.partition(".")[2] == bare]
    if same_name:
        return f"; did you mean '{same_name[0]}'?"
    if "." not in path:
        return nearest(path, key_types()) or nearest(path, (key.partition(".")[2] for key in keys))
    return nearest(path, keys)


def to_yaml(config: Config) -> str:
    """The complete config, ready to run again."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
