"""Presets of populations: one YAML file each; its first comment line says what it is for."""

from importlib import resources

from surefoot.core.layers import Raw
from surefoot.core.strict_yaml import parse_yaml

_SUFFIX = ".yaml"


def population_presets() -> list[str]:
    """The names of all presets of populations, sorted."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))


def load_population_preset(name: str) -> Raw:
    """The settings of a preset."""
    text = resources.files(__name__).joinpath(f"{name}{_SUFFIX}").read_text(encoding="utf-8")
    return dict(parse_yaml(text))
