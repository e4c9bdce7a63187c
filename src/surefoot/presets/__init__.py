"""Presets: one YAML file each; its first comment line names the source of the settings.

A preset is named after its env, `Hopper-v5`; further ones of the same env stand in a folder, `Hopper-v5/fast`.
Envs of a family share presets: every Atari game without one of its own has `Atari` (families.py).
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from surefoot.errors import ConfigError
from surefoot.presets.families import family_presets
from surefoot.settings.config import Config
from surefoot.settings.layers import Raw, build_config, merge
from surefoot.settings.registry import nearest
from surefoot.settings.shipped import Shipped

DEFAULT = "cheetah-minute"
NO_PRESET = "none"
_presets = Shipped(__name__)


@dataclass(frozen=True)
class Configured:
    """A config, and the preset below it; empty if there is none."""

    config: Config
    preset: str

    @property
    def line(self) -> str:
        """Which preset, in one line."""
        if self.preset:
            return f"{self.preset} ({describe_preset(self.preset)})"
        return f"none for {self.config.env.id}: Surefoot's defaults and your settings"


def configured(target: str | None, *layers: Mapping[str, Any]) -> Configured:
    """The config of a preset or env id with further layers, of which the last one wins.

    The preset is the one that the key `preset` of a layer names (`none`: none), else the one that the target names,
    else the one that is named like the env, else the one of its family.
    """
    named, rest = "", []
    for layer in layers:
        named = str(layer.get("preset") or named)
        rest.append({key: value for key, value in layer.items() if key != "preset"})
    if target is not None:
        rest.insert(0, {"env": load_preset(target)["env"] if target in preset_names() else {"id": target}})
    preset = named or (target if target in preset_names() else preset_of(_env_id(merge(*rest))))
    if preset in ("", NO_PRESET):
        return Configured(build_config(*rest), "")
    return Configured(build_config(load_preset(preset), *rest), preset)


def preset_of(env_id: str) -> str:
    """The preset of an env, or an empty name."""
    return next((name for name in (env_id, *family_presets(env_id)) if name in preset_names()), "")


def _env_id(settings: Raw) -> str:
    env = settings.get("env")
    return str(env.get("id", Config().env.id)) if isinstance(env, Mapping) else Config().env.id


@cache
def preset_names() -> tuple[str, ...]:
    """All presets, sorted."""
    return tuple(_presets.names())


def preset_text(name: str) -> str:
    """The YAML of a preset."""
    if name not in preset_names():
        hint = nearest(name, preset_names())
        raise ConfigError(f"unknown preset '{name}'{hint} ('surefoot presets' lists the known ones)")
    return _presets.text(name)


def load_preset(name: str) -> Raw:
    """The settings of a preset."""
    return deepcopy(_parsed(name))


@cache
def _parsed(name: str) -> Raw:
    settings: Raw = yaml.safe_load(preset_text(name))
    return settings


def describe_preset(name: str) -> str:
    """The preset's first comment line."""
    return _presets.describe(name)
