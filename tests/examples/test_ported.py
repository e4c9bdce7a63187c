"""The ported scripts run as they are, with fewer steps."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples" / "ported").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, script, "4096"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) > -3000
