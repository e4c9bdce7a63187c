"""Directories are refused before anything slow is imported."""

import os
import subprocess
import sys

import pytest

from surefoot.errors import RunDirectoryError
from surefoot.storage.run_folder import check_new, check_run

REFUSED = """
import sys
from surefoot.cli.main import main
assert main(sys.argv[1:]) == 2
assert "torch" not in sys.modules
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("{}")
    return tmp_path / "run"


def test_new_directories(run, tmp_path):
    check_new(tmp_path / "new" / "deep")
    check_new(tmp_path)
    with pytest.raises(RunDirectoryError, match="already contains a run; continue it with 'surefoot resume"):
        check_new(run)
    with pytest.raises(RunDirectoryError, match=r"not writable \(Not a directory\)"):
        check_new(run / "config.yaml" / "below")


@pytest.mark.parametrize("file", ["seeds.yaml", "sweep.yaml", "sweep.db", "population.yaml", "population.jsonl"])
def test_folders_of_other_kinds(tmp_path, file):
    (tmp_path / file).write_text("")
    with pytest.raises(RunDirectoryError, match=r"contains .*; choose another directory with --run-dir"):
        check_new(tmp_path)
    with pytest.raises(RunDirectoryError, match=r"population resume|repeat its command|not a run directory"):
        check_run(tmp_path)


@pytest.mark.parametrize("file", ["metrics.jsonl", "checkpoints/step_000000000064.safetensors"])
def test_what_is_left_of_a_run_is_not_mixed_with_a_new_one(run, tmp_path, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("{}")
    with pytest.raises(RunDirectoryError, match=rf"has {file} of a run, but not its config\.yaml; restore it"):
        check_new(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_of_somebody_else(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(RunDirectoryError, match="Permission denied"):
        check_new(tmp_path / "new")


def test_runs(run, tmp_path):
    check_run(run)
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        check_run(tmp_path)


def test_commands_do_not_import_torch_for_it(run, tmp_path):
    for arguments in (["train", "CartPole-v1", "--run-dir", run], ["resume", tmp_path]):
        done = subprocess.run([sys.executable, "-c", REFUSED, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
