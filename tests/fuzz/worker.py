"""The process that tries cases."""

import importlib
import json
import logging
import os
import random
import resource
import shutil
import time
import traceback
from pathlib import Path
from typing import Any

import psutil
import torch

MOST_FAILURES = 10
"""After so many an attack ends."""
MORE_MEMORY = 4 * 2**30
"""Bytes of address space that cases may take; more is a MemoryError, which no typed error covers."""


def prepared(name: str, folder: Path) -> tuple[Any, Any, Path]:
    """The module of an attack, what its cases begin with, and where they may write."""
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    module = importlib.import_module(name if "." in name else f"tests.fuzz.attacks.{name}")
    (folder / "material").mkdir()
    material = module.prepare(folder / "material")
    limit = psutil.Process().memory_info().vms + MORE_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    return module, material, folder / "case"


def run_case(module: Any, material: Any, folder: Path, seed: int, number: int) -> None:
    """One case, in an empty folder that is also the current one."""
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        module.case(random.Random(f"{seed}/{number}"), material, folder)
    finally:
        os.chdir(before)
        _remove(folder)


def work(name: str, seed: int, first: int, seconds: float, folder: Path) -> None:
    """Try cases until the time is over; writes each number before it is tried, and what failed."""
    module, material, place = prepared(name, folder)
    until = time.monotonic() + seconds
    with (folder / "progress.jsonl").open("w", encoding="utf-8", buffering=1) as progress:
        number, failures = first, 0
        while number == first or (time.monotonic() < until and failures < MOST_FAILURES):
            print(json.dumps({"case": number}), file=progress)
            try:
                run_case(module, material, place, seed, number)
            except BaseException:  # whatever escapes is what is looked for
                failures += 1
                print(json.dumps({"of": number, "failure": traceback.format_exc()[-4000:]}), file=progress)
            number += 1


def _remove(folder: Path) -> None:
    """Cases also take permissions away."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder)
