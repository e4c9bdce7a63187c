"""What a result was measured on."""

import os
import platform
from importlib import metadata
from typing import Any

from surefoot.core.version import VERSION

PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "envpool")


def machine() -> dict[str, Any]:
    """Processor, cores, memory and the versions that matter."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "versions": {"surefoot": VERSION, **_installed(PACKAGES)},
    }


def describe_machine(facts: dict[str, Any]) -> str:
    """The facts in one line."""
    memory = "" if facts["memory_gb"] is None else f", {facts['memory_gb']} GB"
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return f"{facts['processor']}, {facts['cores']} cores{memory}; Python {facts['python']}, {versions}"


def _installed(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


def _memory_gb() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (OSError, ValueError):
        return None
