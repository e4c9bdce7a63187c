"""Where the sides of other systems come from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sides import find_side, peers
from surefoot.benchmark import checkout
from surefoot.cli.main import main
from surefoot.errors import SurefootError

ROOT = Path(__file__).parents[2]


def test_an_editable_install_finds_them_from_any_folder(tmp_path: Path) -> None:
    """As the console script does it: without the current folder among the folders of modules."""
    found = "import_from_checkout('benchmarks.sides').find_side('sb3').title"
    code = f"from surefoot.benchmark.checkout import import_from_checkout; print({found})"
    command = [sys.executable, "-P", "-c", code]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "SB3 DummyVecEnv\n"


def test_an_installed_package_needs_a_checkout(monkeypatch, tmp_path: Path, capsys) -> None:
    monkeypatch.setattr(checkout, "SOURCE", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "peers"]) == 2
    assert "run the command in a checkout of the repository" in capsys.readouterr().err
    assert find_side("local").title == "Surefoot local"
    with pytest.raises(SurefootError, match="not part of the installed package"):
        find_side("sb3")
    monkeypatch.chdir(ROOT)
    assert "sb3" in peers().names()
