"""Groups of runs that differ only in their seed; the labels show the settings that differ between groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from surefoot.core.config import Config
from surefoot.inspection.report.reported_run import ReportedRun

SEED, ENV = "train.seed", "env.id"
_WITHOUT_EFFECT = ("log.", "train.video_")
"""Settings that do not affect training, so they do not split a group."""
_MAX_KEYS_IN_LABEL = 2


@dataclass(frozen=True)
class Group:
    """Runs with the same config except for the seed; `index` is the position on the page and selects the color."""

    index: int
    label: str
    env: str
    runs: tuple[ReportedRun, ...]


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Maps `section.key` to the value as text; deeper nesting gives longer keys."""
    found: dict[str, str] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) and value else {name: as_text(value)}
    return found


def as_text(value: Any) -> str:
    """A value as readable text."""
    if isinstance(value, (list, tuple)):
        return ", ".join(as_text(part) for part in value) or "none"
    if value is None or value == {}:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def differing_keys(configs: Sequence[dict[str, str]]) -> list[str]:
    """Keys whose values differ, in the order of the files."""
    keys = dict.fromkeys(key for config in configs for key in config)
    return [key for key in keys if len({config.get(key) for config in configs}) > 1]


def group_runs(runs: Sequence[ReportedRun]) -> list[Group]:
    """Group by everything but the seed, in the order given."""
    members: dict[tuple[tuple[str, str], ...], list[ReportedRun]] = {}
    for run in runs:
        members.setdefault(tuple(sorted(_decisive(run).items())), []).append(run)
    groups = list(members.values())
    if len(runs) == 1:
        labels = [runs[0].name]
    else:
        labels = _labels([_decisive(group[0]) for group in groups], [_name(group) for group in groups])
    return [
        Group(index, label, settings_of(group[0])[ENV], tuple(group))
        for index, (label, group) in enumerate(zip(labels, groups, strict=True))
    ]


def settings_of(run: ReportedRun) -> dict[str, str]:
    """The config with defaults for missing keys: a run of an earlier version did not know them."""
    said = flat(run.config)
    return said | {key: value for key, value in _defaults().items() if key not in said}


@cache
def _defaults() -> dict[str, str]:
    return flat(Config().model_dump(mode="json")) | {ENV: "unknown environment", SEED: "unknown"}


def _decisive(run: ReportedRun) -> dict[str, str]:
    return {
        key: value for key, value in settings_of(run).items() if key != SEED and not key.startswith(_WITHOUT_EFFECT)
    }


def _name(runs: Sequence[ReportedRun]) -> str:
    """The name of the first run, and the number of further runs."""
    return runs[0].name + (f" + {len(runs) - 1}" if len(runs) > 1 else "")


def _labels(configs: list[dict[str, str]], names: list[str]) -> list[str]:
    """The env if there are several, and the settings that differ if they are few; else the name of the run."""
    envs = [config[ENV] for config in configs]
    labels = []
    for config, env, name in zip(configs, envs, names, strict=True):
        peers = [other for other, other_env in zip(configs, envs, strict=True) if other_env == env]
        keys = differing_keys(peers)
        parts = [env] if len(set(envs)) > 1 or not keys else []
        if len(keys) > _MAX_KEYS_IN_LABEL:
            parts.append(name)
        else:
            parts += [f"{word} {config.get(key, 'not set')}" for key, word in zip(keys, _short(keys), strict=True)]
        labels.append(" · ".join(parts))
    return labels


def _short(keys: list[str]) -> list[str]:
    """The last component of each key, unless two keys share it."""
    words = [key.rsplit(".", 1)[-1] for key in keys]
    return words if len(set(words)) == len(words) else keys
