"""Description of the machine."""

import os
import platform
from importlib import metadata
from typing import Any

from surefoot.machine.ram import machine_ram
from surefoot.version import VERSION

PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "stable-baselines3", "sb3-contrib", "envpool")


def machine() -> dict[str, Any]:
    """Processor, cores, RAM and relevant versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(machine_ram().total / 2**30),
        "python": platform.python_version(),
        "versions": {"surefoot": VERSION, **_installed(PACKAGES)},
    }


def describe_machine(facts: dict[str, Any]) -> str:
    """The facts in one line."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    hardware = f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB"
    return f"{hardware}; Python {facts['python']}, {versions}"


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
