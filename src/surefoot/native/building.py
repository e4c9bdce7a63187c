"""Compiles environments of users against the headers and the library that are installed with the core."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from surefoot.errors import NativeError
from surefoot.native import core

FLAGS = ("-std=c++20", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno")
"""No contraction: environments round as numpy does."""
WARNINGS = ("-Wall", "-Wextra")


def build(source: Path, output: Path | None = None) -> Path:
    """Compile one C++ file into a library of environments beside it, and say where it is."""
    if not source.is_file():
        raise NativeError(f"{source} does not exist; create a template with 'surefoot native new {source.stem}'")
    output = output or source.with_suffix(".so")
    compiler = _compiler()
    with tempfile.TemporaryDirectory(dir=_folder(output)) as folder:
        # Renamed into place: a process that has the old library loaded keeps it.
        fresh = Path(folder) / output.name
        command = [*compiler, *FLAGS, *WARNINGS, *_includes(), str(source), *_libraries(), "-o", str(fresh)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NativeError(f"{source} does not compile:\n{done.stderr.strip()}")
        fresh.replace(output)
    return output


def template_folder() -> Path:
    """Where the files are that a native environment begins with."""
    return _installed() / "new-env"


def _folder(output: Path) -> Path:
    if not output.parent.is_dir():
        raise NativeError(f"cannot write {output}: the folder {output.parent} does not exist")
    return output.parent


def _compiler() -> list[str]:
    """CXX if it is set, which may have arguments, else what the system has."""
    chosen = os.environ.get("CXX", "").split()
    candidates = [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]
    for candidate in candidates:
        if shutil.which(candidate[0]):
            return candidate
    tried = f"CXX is '{chosen[0]}'" if chosen else "tried c++, g++ and clang++"
    raise NativeError(f"no C++ compiler found ({tried}); install one, such as g++ 12, or set CXX")


def _installed() -> Path:
    """Where the core is, and what belongs to it."""
    folder = Path(str(core().__file__)).parent
    if not (folder / "include").is_dir():
        raise NativeError(f"the headers are missing in {folder}; install Surefoot again with 'pip install .'")
    return folder


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    return Path((spec.submodule_search_locations or [])[0])


def _includes() -> list[str]:
    return [f"-I{_installed() / 'include'}", "-isystem", str(_package("mujoco") / "include")]


def _libraries() -> list[str]:
    """The core has MuJoCo loaded when it loads the library: it needs no path."""
    mujoco = next(_package("mujoco").glob("libmujoco.*"))
    random = _package("numpy") / "random" / "lib" / "libnpyrandom.a"
    return [str(_installed() / "lib" / "libsurefoot_env.a"), str(random), str(mujoco)]
