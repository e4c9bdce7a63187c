"""What a result was measured on."""

import os
import platform
from importlib import metadata
from typing import Any

PACKAGES = ("torch", "numpy", "gymnasium", "mujoco", "stable-baselines3")


def machine() -> dict[str, Any]:
    """Processor, cores and the versions that matter."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()
