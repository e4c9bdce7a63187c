"""A core that cannot be loaded is one typed error with a remedy, tripped in processes of their own."""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import surefoot
from surefoot.native import core

SITE = Path(find_spec("mujoco").submodule_search_locations[0]).parent
LIBRARY = next((SITE / "mujoco").glob("libmujoco.*"))

LOAD = """
from surefoot.errors import NativeError
from surefoot.native import core
try:
    core()
except NativeError as error:
    print(error)
else:
    print("loaded")
"""


def load(environment: dict[str, str], *arguments: str, before: str = "") -> str:
    command = [sys.executable, *arguments, "-c", before + LOAD]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


def stand_in_for_mujoco(folder: Path) -> Path:
    package = folder / "mujoco"
    package.mkdir()
    (package / "__init__.py").touch()
    return package


def offset_of_version() -> int:
    """Where in the file of MuJoCo's library its function `mj_version` lies."""
    address = ctypes.cast(ctypes.CDLL(str(LIBRARY)).mj_version, ctypes.c_void_p).value
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, _, offset, *_ = line.split()
        start, end = (int(number, 16) for number in span.split("-"))
        if start <= address < end:
            return address - start + int(offset, 16)
    raise AssertionError("the library is not mapped")


def test_the_core_loads_with_the_mujoco_it_was_built_with() -> None:
    built, loaded = core().mujoco_versions()
    assert built == loaded
    assert load({}) == "loaded"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="changes a constant in x86-64 code")
def test_another_version_of_mujoco_is_refused(tmp_path: Path) -> None:
    built = core().mujoco_versions()[0]
    library = stand_in_for_mujoco(tmp_path) / LIBRARY.name
    content = bytearray(LIBRARY.read_bytes())
    constant = built.to_bytes(4, "little")
    at = content.index(constant, offset_of_version())
    assert at - offset_of_version() < 16  # loaded by one of the function's first instructions
    content[at : at + 4] = (built + 1).to_bytes(4, "little")
    library.write_bytes(content)
    said = load({"PYTHONPATH": str(tmp_path)})
    assert said.startswith(f"the native core was built with MuJoCo {built} and cannot run with {built + 1}")
    assert "reinstall Surefoot" in said


def test_a_mujoco_without_library_is_refused(tmp_path: Path) -> None:
    stand_in_for_mujoco(tmp_path)
    said = load({"PYTHONPATH": str(tmp_path)})
    assert said.startswith("the library of the package 'mujoco' cannot be loaded (it is missing)")
    assert "rollout.engine to local" in said


def test_a_broken_mujoco_library_is_refused(tmp_path: Path) -> None:
    (stand_in_for_mujoco(tmp_path) / LIBRARY.name).write_bytes(b"no library")
    said = load({"PYTHONPATH": str(tmp_path)})
    assert "cannot be loaded" in said
    assert str(tmp_path) in said


def test_a_missing_module_names_the_remedy(tmp_path: Path) -> None:
    source = Path(surefoot.__file__).parent
    shutil.copytree(source, tmp_path / "surefoot", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    paths = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(SITE)!r}]\n"
    said = load({"SUREFOOT_NATIVE": ""}, "-S", before=paths)  # without site, and so without the editable install
    assert said.startswith("the native core cannot be imported (")
    assert "with 'pip install .', or set rollout.engine to local" in said


@pytest.mark.parametrize("content", [None, b"", b"no library"])
def test_a_build_under_development_that_cannot_be_loaded_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "_core.so").write_bytes(content)
    said = load({"SUREFOOT_NATIVE": str(tmp_path)})
    assert said.startswith("the native core cannot be imported (")
    assert str(tmp_path) in said
