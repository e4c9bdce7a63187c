"""`--section.key value` for every config key, beside a command's own options."""

from collections.abc import Callable
from typing import Any, TypeVar

import tyro
import yaml

from surefoot.core.config import Config, key_types
from surefoot.core.errors import ConfigError
from surefoot.core.layers import Raw

T = TypeVar("T")


def parse(function: Callable[..., T], command: str, arguments: list[str]) -> T:
    """Call `function` with the command's options, declared by its signature."""
    return tyro.cli(function, prog=f"surefoot {command}", args=arguments)


def split_settings(arguments: list[str]) -> tuple[list[str], Raw]:
    """Take `--section.key value` and `--section.key=value` out of the arguments; a lone one means true."""
    rest: list[str] = []
    settings: Raw = {}
    pending = list(arguments)
    while pending:
        argument = pending.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or "." not in name:
            rest.append(argument)
            continue
        if not equals:
            value = pending.pop(0) if pending and not pending[0].startswith("--") else "true"
        settings[name.replace("-", "_")] = _value(name, value)
    return rest, settings


def print_settings() -> None:
    """Every config key with its default and meaning, below a command's own help."""
    print("settings (--section.key VALUE; defaults shown, presets and --config change them):")
    defaults = Config()
    for section, cls in key_types().items():
        print(f"\n  {section}: {(cls.__doc__ or '').strip()}")
        for key, field in cls.model_fields.items():
            default = getattr(getattr(defaults, section), key)
            shown = default.kind if hasattr(default, "kind") else _brief(default)
            print(f"    --{section}.{key:26s} {shown:14s} {field.description}")


def wants_help(arguments: list[str]) -> bool:
    """Whether the user asked for help."""
    return "-h" in arguments or "--help" in arguments


def _value(name: str, text: str) -> Any:
    """Lists and mappings are YAML; the rest stays text, read by the key's type (`off` is no boolean here)."""
    if text.lower() in ("null", "none"):
        return None
    if not text.startswith(("[", "{")):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError([f"{name}: cannot read the value '{text}'"]) from error


def _brief(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value) or "none"
    return "none" if value is None or value == {} else str(value)
