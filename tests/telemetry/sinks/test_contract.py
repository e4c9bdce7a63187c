"""What every sink of the folder does: found by the registry, so a new one is tested without an edit here."""

import gc
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot.telemetry
import surefoot.telemetry.sinks
from surefoot.errors import SinkError
from surefoot.settings.config import Config, LogConfig
from surefoot.telemetry.sinks import check_sinks, file_sinks, open_sinks
from tests.cli.processes import Process


def write_two_records(name: str, folder: Path) -> None:
    """In a process of its own: W&B starts a service."""
    import os
    import time

    os.environ["WANDB_MODE"] = "offline"
    os.chdir(folder.parent)
    for step in (100, 200):  # a run that is resumed
        sink = file_sinks[name](folder, Config())
        sink.write(step, {"train/loss": 0.5, "warn/kl_high": 1.0})
        sink.write(step + 1, {})
        began = time.monotonic()
        sink.close()
        assert time.monotonic() - began < 20
    print("done")


@pytest.mark.parametrize("name", file_sinks.names())
def test_a_sink_keeps_its_files_in_the_run_and_prints_nothing(name, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    finished = Process(write_two_records, name, run).wait().succeeded()
    assert (finished.out, finished.err) == ("done\n", "")
    assert any(path.is_file() for path in run.rglob("*"))
    assert list(tmp_path.iterdir()) == [run]


def test_every_file_of_the_folder_is_a_sink():
    assert file_sinks.names() == [module.name for module in pkgutil.iter_modules(surefoot.telemetry.sinks.__path__)]


def test_the_settings_say_which_are_opened(tmp_path):
    def opened(**log: object) -> list[str]:
        sinks = open_sinks(tmp_path, Config(log=LogConfig(**log)))
        for sink in sinks:
            sink.close()
        return [type(sink).__name__ for sink in sinks]

    assert opened() == ["JsonlSink", "TensorBoardSink"]
    assert opened(tensorboard=False) == ["JsonlSink"]


def test_if_one_cannot_be_opened_the_others_are_closed(tmp_path):
    """A handle left open would be a warning, and warnings are errors here."""

    class Odd:
        """A folder that has room for nothing but metrics.jsonl."""

        def __truediv__(self, name: str) -> Path:
            return tmp_path / name if name == "metrics.jsonl" else tmp_path / "missing" / name

    with pytest.raises(SinkError, match="TensorBoardSink could not be opened: FileNotFoundError"):
        open_sinks(Odd(), Config())
    gc.collect()


def test_what_is_installed_is_accepted():
    check_sinks(LogConfig(wandb=True))


def test_telemetry_never_imports_torch():
    found = pkgutil.walk_packages(surefoot.telemetry.__path__, "surefoot.telemetry.")
    modules = [module.name for module in found]
    assert len(modules) >= 8
    code = f"import sys, {', '.join(modules)}; print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "False\n"
