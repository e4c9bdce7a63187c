"""Writes docs/settings.md from the config classes: `python docs/settings_page.py`."""

from pathlib import Path

from surefoot.core.config import Config, EncoderConfig, MemoryConfig, Section, key_types

PAGE = Path(__file__).parent / "settings.md"


def page() -> str:
    """The whole page."""
    defaults = Config()
    lines = [
        "# Settings",
        "",
        "Written by `python docs/settings_page.py` from `core/config.py`. Give any of them as `--section.key value`,",
        "in a YAML file (`--config`), or by name to `PPO(...)`.",
    ]
    for section, cls in key_types().items():
        lines += ["", f"## {section}", "", (cls.__doc__ or "").strip(), *_rows(cls, getattr(defaults, section))]
    for title, part in (("An encoder", EncoderConfig()), ("policy.memory", MemoryConfig())):
        lines += ["", f"## {title}", "", (type(part).__doc__ or "").strip(), *_rows(type(part), part)]
    return "\n".join([*lines, ""])


def _rows(cls: type[Section], defaults: Section) -> list[str]:
    rows = ["", "| key | default | meaning |", "|---|---|---|"]
    for key, field in cls.model_fields.items():
        value = getattr(defaults, key)
        shown = value.kind if isinstance(value, EncoderConfig | MemoryConfig) else value
        shown = list(shown) if isinstance(shown, tuple) else shown
        rows.append(f"| `{key}` | `{shown}` | {field.description} |")
    return rows


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
