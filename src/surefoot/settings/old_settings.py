"""Renames settings of earlier versions, so that old configs, flags and checkpoints keep working."""

from collections.abc import Mapping
from typing import Any

OLD_NAMES: dict[str, str] = {
    "policy.std": "policy.distribution.std",
    "policy.log_std": "policy.distribution.log_std",
    "policy.log_std_groups": "policy.distribution.log_std_groups",
    "policy.std_floor": "policy.distribution.std_floor",
    "policy.action_bounds": "policy.distribution.action_bounds",
    "policy.memory.shared": "policy.share_memory",
    "rollout.step_timeout_s": "rollout.engine.step_timeout_s",
    "rollout.max_restarts": "rollout.engine.max_restarts",
    "optimizer.lr_schedule": "schedules.lr",
    "optimizer.desired_kl": "schedules.lr.desired_kl",
    "optimizer.schedule_floor": "schedules.lr.floor",
    "ppo.clip_schedule": "schedules.clip",
    "ppo.entropy_schedule": "schedules.entropy_coef",
}
"""Old name -> new name. A value given under the old name is used for the new one."""

_GAUSSIAN = ("std", "log_std", "log_std_groups", "std_floor", "action_bounds")
_PROCESSES = ("step_timeout_s", "max_restarts")
_KNOBS = {"lr": "optimizer.lr_schedule", "clip": "ppo.clip_schedule", "entropy_coef": "ppo.entropy_schedule"}
_CONV = {"channels": [16, 32], "kernels": [4, 3], "strides": [2, 2], "features": 64}
_CELLS = {"hidden_size": 64, "layers": 1}
_COMPLETE = ({"layers", *_CONV}, set(_CELLS))
_UNUSED: dict[str, dict[str, Any]] = {
    "conv": {"layers": [64]},
    "auto": {"layers": [64]},
    "mlp": _CONV,
    "identity": {"layers": [64], **_CONV},
    "dict": {"layers": [64], **_CONV},
    "none": _CELLS,
}
"""Defaults of other kinds, which old complete configs list for every encoder and memory."""


def renewed(layer: dict[str, Any]) -> dict[str, Any]:
    """A layer of settings, nested by section, with current names; malformed entries are left to validation."""
    sections = {name: dict(keys) if isinstance(keys, Mapping) else keys for name, keys in layer.items()}
    policy, rollout = sections.get("policy"), sections.get("rollout")
    if isinstance(policy, dict):
        _renew_policy(policy)
    if isinstance(rollout, dict):
        _move(rollout, _PROCESSES, "engine", ("processes",))
    schedules = _taken_schedules(sections)
    if schedules:
        sections["schedules"] = {**schedules, **(sections.get("schedules") or {})}
    return sections


def _renew_policy(policy: dict[str, Any]) -> None:
    _move(policy, _GAUSSIAN, "distribution", ("auto", "gaussian", "tanh_gaussian"))
    memory = policy.get("memory")
    if isinstance(memory, Mapping) and "shared" in memory:
        policy["memory"] = {key: value for key, value in memory.items() if key != "shared"}
        policy.setdefault("share_memory", memory["shared"])
    for name in ("encoder", "memory"):
        if name in policy:
            policy[name] = _without_unused(policy[name])
    if isinstance(policy.get("encoders"), Mapping):
        policy["encoders"] = {key: _without_unused(one) for key, one in policy["encoders"].items()}


def _move(section: dict[str, Any], names: tuple[str, ...], part: str, kinds: tuple[str, ...]) -> None:
    """Move settings into the part they now belong to; drop them if the part's kind never used them."""
    moved = {name: section.pop(name) for name in names if name in section}
    present = section.get(part, {})
    present = {"kind": present} if isinstance(present, str) else present
    if moved and isinstance(present, Mapping) and present.get("kind", kinds[0]) in kinds:
        section[part] = {**moved, **present}


def _without_unused(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    unused = _UNUSED.get(str(part.get("kind")), {})
    is_complete = any(keys <= part.keys() for keys in _COMPLETE)  # listed by an old version, not chosen by anybody
    return {
        key: value
        for key, value in part.items()
        if key not in unused or not (is_complete or _plain(value) == unused[key])
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _taken_schedules(sections: dict[str, Any]) -> dict[str, Any]:
    """Remove the old schedules, with their floor and target KL, from their sections."""
    optimizer = sections.get("optimizer")
    settings = {"cosine": ("floor", "schedule_floor"), "kl_adaptive": ("desired_kl", "desired_kl")}
    given = {}
    for kind, (new, old) in settings.items():
        if isinstance(optimizer, dict) and old in optimizer:
            given[kind] = {new: optimizer.pop(old)}
    schedules: dict[str, Any] = {}
    for knob, (section, old) in ((knob, key.split(".")) for knob, key in _KNOBS.items()):
        if isinstance(sections.get(section), dict) and old in sections[section]:
            kind = sections[section].pop(old)
            schedules[knob] = {"kind": kind, **given.get(kind, {})}
    if given and not schedules:  # changes what an earlier layer chose
        schedules["lr"] = {key: value for one in given.values() for key, value in one.items()}
    return schedules
