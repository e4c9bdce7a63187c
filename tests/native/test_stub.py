import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_stub_is_what_the_module_says() -> None:
    command = [sys.executable, "cpp/bindings/stub.py"]
    stub = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    committed = (ROOT / "src/surefoot/native/_core.pyi").read_text()
    assert stub == committed, "the bindings changed: run 'make stub'"
