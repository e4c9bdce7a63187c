"""The ported scripts run as they are, with fewer steps."""

import os
import runpy
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Process

SCRIPTS = sorted((Path(__file__).parents[2] / "examples" / "ported").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script: Path, tmp_path: Path) -> None:
    done = Process(run, str(script), str(tmp_path)).wait().succeeded()
    assert float(done.out.split()[0]) > -3000


def run(script: str, folder: str) -> None:
    os.chdir(folder)
    sys.argv = [script, "4096"]
    runpy.run_path(script, run_name="__main__")
