"""The C++ of MyEnv-v0 against its Python twin."""

import subprocess
from pathlib import Path

from surefoot.verification import verify

HERE = Path(__file__).parent


def test_the_native_env_is_its_python_twin() -> None:
    """Builds the library, then compares both."""
    subprocess.run(["surefoot", "native", "build", str(HERE / "my_env.cpp")], check=True)
    report = verify(str(HERE / "my_env.so"))
    assert report.ok, report.differing
