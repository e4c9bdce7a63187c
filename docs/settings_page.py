"""Writes docs/settings.md from the config classes: `python docs/settings_page.py`."""

from pathlib import Path

from surefoot.population.settings import PopulationConfig
from surefoot.settings.config import Config, key_types, part_of
from surefoot.settings.parts import PartOf, PartSettings, PartsOf, Section, choices, settings_class
from surefoot.settings.ranges import Range
from surefoot.settings.registry import Registry

PAGE = Path(__file__).parent / "settings.md"


def page() -> str:
    """The whole page."""
    defaults = Config()
    lines = [
        "# Settings",
        "",
        "Written by `python docs/settings_page.py` from `settings/config.py` and the parts' own files. Give any of",
        "them as `--section.key value`, in a YAML file (`--config`), or by name to `PPO(...)`.",
        "",
        "A part is a kind such as `conv`, or a mapping with its settings: `encoder: {kind: conv, features: 128}`.",
        "On the command line: `--policy.encoder conv --policy.encoder.features 128`. A kind may be `module:Name`,",
        "a class in a file of your own ([how to write one](extend/README.md)).",
    ]
    for section, cls in key_types().items():
        lines += ["", f"## {section}", "", (cls.__doc__ or "").strip(), *_rows(cls, getattr(defaults, section))]
    for section in ("schedules", "hooks"):
        lines += ["", f"## {section}", "", f"A mapping: {Config.model_fields[section].description}."]
    lines += ["", "## population", "", "Only for `surefoot population` ([how it works](population.md))."]
    lines += _rows(PopulationConfig, PopulationConfig())
    lines += ["", "Each of the `tunables` has these settings:", *_rows(Range, Range(low=0, high=1))]
    lines += ["", "## Kinds of parts"]
    for title, part in _parts().items():
        lines += ["", f"### {title}"]
        for kind in Registry.of(part.package).names():
            lines += _kind(part, kind)
    return "\n".join([*lines, ""])


def _parts() -> dict[str, PartOf | PartsOf]:
    paths = [(section, key) for section, cls in key_types().items() for key in cls.model_fields]
    found = {".".join(path): part_of(path) for path in [*paths, ("schedules",), ("hooks",)]}
    return {name: part for name, part in found.items() if part is not None and name != "policy.encoders"}


def _kind(part: PartOf | PartsOf, kind: str) -> list[str]:
    settings = settings_class(part.package, kind)
    doc = (Registry.of(part.package)[kind].__doc__ or "").strip().splitlines()[0]
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for key, field in settings.model_fields.items():
        if key != "kind":
            rows.append(f"| `{key}` | `{_shown(field.get_default())}` | {field.description} |")
    return ["", f"**{kind}**: {doc}", *(["", *rows] if len(rows) > 2 else [])]


def _rows(cls: type[Section], defaults: Section) -> list[str]:
    rows = ["", "| key | default | meaning |", "|---|---|---|"]
    for key, field in cls.model_fields.items():
        known = f" ({', '.join(f'`{one}`' for one in choices(field))})" if choices(field) else ""
        rows.append(f"| `{key}` | `{_shown(getattr(defaults, key))}` | {field.description}{known} |")
    return rows


def _shown(value: object) -> object:
    if isinstance(value, PartSettings):
        return value.kind
    return list(value) if isinstance(value, tuple) else "required" if repr(value) == "PydanticUndefined" else value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
