"""Presets: one YAML file each; its first comment line names the source of the settings."""

from importlib import resources

import yaml

from surefoot.core.errors import ConfigError
from surefoot.core.layers import Raw
from surefoot.core.registry import nearest

DEFAULT = "cheetah-minute"
_SUFFIX = ".yaml"


def preset_names() -> list[str]:
    """All presets, sorted."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def preset_text(name: str) -> str:
    """The YAML of a preset."""
    if name not in preset_names():
        hint = nearest(name, preset_names())
        raise ConfigError([f"unknown preset '{name}'{hint} ('surefoot presets' lists the known ones)"])
    return resources.files(__name__).joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def load_preset(name: str) -> Raw:
    """The settings of a preset."""
    settings: Raw = yaml.safe_load(preset_text(name))
    return settings


def describe_preset(name: str) -> str:
    """The preset's first comment line."""
    return preset_text(name).splitlines()[0].removeprefix("#").strip()
