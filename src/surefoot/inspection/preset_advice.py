"""Remedies beside the preset of the environment: what differs from it comes first, what it sets on purpose last."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.presets import load_preset, preset_names
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.telemetry.remedies import Remedy, setting_of


@dataclass(frozen=True)
class Preset:
    """A preset: its complete settings, and the names of those that it sets itself."""

    name: str
    config: Config
    own: frozenset[str]


def preset_of(config: Config) -> Preset | None:
    """The preset of the run's environment; of several, the one with which the run agrees most."""
    found = [preset for name in preset_names() if (preset := _read(name, config.env.id)) is not None]
    return max(found, key=lambda preset: _agreement(preset, config), default=None)


def advised(remedies: Sequence[Remedy], config: Config) -> tuple[str, ...]:
    """The texts of remedies, in the order in which to try them."""
    preset = preset_of(config)
    if preset is None:
        return tuple(remedy.text for remedy in remedies)
    ranked = [_beside(remedy, config, preset) for remedy in remedies]
    return tuple(text for _, text in sorted(ranked, key=lambda pair: pair[0]))


def _beside(remedy: Remedy, config: Config, preset: Preset) -> tuple[int, str]:
    """How early to try a remedy, and its text."""
    if not remedy.setting:
        return 1, remedy.text
    now, theirs = setting_of(config, remedy.setting), setting_of(preset.config, remedy.setting)
    if now == theirs:
        is_deliberate = remedy.setting in preset.own
        return (
            (2, f"{remedy.text} (the preset {preset.name} sets {_shown(now)} on purpose)")
            if is_deliberate
            else (1, remedy.text)
        )
    if _leads_to(theirs, now, remedy.value):
        return 0, f"set {remedy.setting} from {_shown(now)} to {_shown(theirs)}, as in the preset {preset.name}"
    return 1, remedy.text


def _leads_to(theirs: Any, now: Any, advised_value: Any) -> bool:
    """Whether the preset's value is what the remedy advises, or lies in its direction."""
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (theirs, now, advised_value)]
    if all(numbers):
        return bool((theirs - now) * (advised_value - now) > 0)
    return bool(theirs == advised_value)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _read(name: str, env_id: str) -> Preset | None:
    settings = load_preset(name)
    if settings.get("env", {}).get("id") != env_id:
        return None
    own = frozenset(f"{section}.{key}" for section, keys in settings.items() for key in keys)
    return Preset(name, build_config(settings), own)


def _agreement(preset: Preset, config: Config) -> int:
    names = [name for name in preset.own if name.partition(".")[0] not in ("schedules", "hooks")]
    return sum(setting_of(preset.config, name) == setting_of(config, name) for name in names)
