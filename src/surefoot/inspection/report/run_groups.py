"""Groups of runs that differ only in their seed; the labels show the settings that differ between groups."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.seeds_folder import is_seeds_folder
from surefoot.settings.config import Config

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
        return ", ".join(as_text(one) for one in value) or "none"
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
    differences = [runs[0].name] if len(runs) == 1 else label_differences(groups)
    envs = [settings_of(group[0])[ENV] for group in groups]
    named = [len(runs) > 1 and (len(set(envs)) > 1 or not difference) for difference in differences]
    labels = [
        " · ".join(one for one in (env * is_named, difference) if one)
        for env, difference, is_named in zip(envs, differences, named, strict=True)
    ]
    return [
        Group(index, label, env, tuple(group))
        for index, (label, env, group) in enumerate(zip(labels, envs, groups, strict=True))
    ]


def label_differences(groups: Sequence[Sequence[ReportedRun]]) -> list[str]:
    """How the settings of a group differ from the others of its env, if they are few; else the name of the group."""
    configs = [_decisive(group[0]) for group in groups]
    labels = []
    for group, config in zip(groups, configs, strict=True):
        keys = differing_keys([other for other in configs if other[ENV] == config[ENV]])
        if len(keys) > _MAX_KEYS_IN_LABEL:
            labels.append(_name(group))
        else:
            said = zip(keys, _short(keys), strict=True)
            labels.append(" · ".join(f"{word} {config.get(key, 'not set')}" for key, word in said))
    return labels


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
    """The folder of the seeds, or the name of the first run and the number of further runs."""
    folders = {run.path.resolve().parent for run in runs}
    if len(folders) == 1 and is_seeds_folder(next(iter(folders))):
        return next(iter(folders)).name
    return runs[0].name + (f" + {len(runs) - 1}" if len(runs) > 1 else "")


def _short(keys: list[str]) -> list[str]:
    """The last component of each key, unless two keys share it."""
    words = [key.rsplit(".", 1)[-1] for key in keys]
    return words if len(set(words)) == len(words) else keys
