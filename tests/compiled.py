"""Libraries of C++ envs, compiled once for all tests, and again only if something that the compiler reads has changed.

What `surefoot native build` itself does is tested by tests/cli/test_native.py.
"""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from surefoot.native import building

_KEPT = Path(__file__).parents[1] / "build" / "test-libraries"


def compiled(source: Path, output: Path | None = None) -> Path:
    """As `build` of surefoot.native.building does."""
    output = output or source.with_suffix(".so")
    kept = _KEPT / f"{_fingerprint(source)}.so"
    _KEPT.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            building.build(source, kept)
    # A new file under the old name: a process that has the old one loaded keeps it.
    output.unlink(missing_ok=True)
    return Path(shutil.copy(kept, output))


def _fingerprint(source: Path) -> str:
    """Of everything that the compiler reads, and of how it is called."""
    compiler, includes, libraries = building._compiler(), building._includes(), building._libraries()
    version = subprocess.run([*compiler, "--version"], capture_output=True, check=True).stdout
    headers = Path(includes[0].removeprefix("-I"))
    digest = hashlib.sha256(repr((compiler, building.FLAGS, building.WARNINGS, includes)).encode() + version)
    for file in (
        source,
        *sorted(headers.rglob("*.hpp")),
        *sorted(Path(includes[-1]).rglob("*.h")),
        *map(Path, libraries),
    ):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:32]
