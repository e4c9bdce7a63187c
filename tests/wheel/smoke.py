"""Tries a wheel as a user would: `python tests/wheel/smoke.py dist/surefoot-*.whl`, run by `make wheel`.

The wheel is installed into a plain virtual environment and used there with a PATH that has neither a compiler nor any
other tool, in a folder outside the checkout.
"""

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parents[2]
PROVIDED = {"libmujoco", "libstdc++", "libgcc_s", "libm", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}
"""Libraries that the core may need: MuJoCo's comes with its package, the others with every Linux system."""


def check_contents(wheel: Path) -> None:
    """Every file of the package is there, and the core knows no path of the machine that built it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
        missing = {name for name in sources if not name.endswith((".pyc", ".so"))} - names
        assert not missing, f"not in the wheel: {sorted(missing)}"
        assert {"surefoot/native/lib/libsurefoot_env.a", "surefoot/native/new-env/my_env.cpp"} <= names
        assert "manylinux" in wheel.name, f"{wheel.name} fits only systems like this one"
        (core,) = (name for name in names if name.startswith("surefoot/native/_core") and name.endswith(".so"))
        assert str(ROOT).encode() not in archive.read(core), "the core names the folder that it was built in"
        with archive.open(core) as file:
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            tags = list(dynamic.iter_tags())
    assert not {tag.entry.d_tag for tag in tags} & {"DT_RPATH", "DT_RUNPATH"}, "the core has a path to libraries"
    needed = {tag.needed.partition(".so")[0] for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
    assert needed <= PROVIDED, f"the core needs {needed - PROVIDED}"


class Installed:
    """A wheel in a virtual environment."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.folder, self.bin = folder / "empty", folder / "venv" / "bin"
        self.folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        self.pip(str(wheel))

    def pip(self, *packages: str) -> None:
        """Install packages, in the versions that Surefoot is tested with."""
        options = ["--quiet", "--disable-pip-version-check", "--constraint", str(ROOT / "constraints.txt")]
        subprocess.run([self.bin / "python", "-m", "pip", "install", *options, *packages], cwd=self.folder, check=True)

    def run(self, *command: str, code: int = 0) -> str:
        """The output of a command that must exit with this code."""
        print("$", *command, flush=True)
        program, *arguments = command
        kept = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "PYTHONPATH")}
        line: Sequence[str] = [str(self.bin / program), *arguments]
        environment = kept | {"PATH": str(self.bin)}
        done = subprocess.run(line, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


def check_training(installed: Installed) -> None:
    """Presets, native rollouts, evaluation, verification and reports."""
    assert "HalfCheetah-v5" in installed.run("surefoot", "presets")
    trained = installed.run("surefoot", "train", "CartPole-v1", "--steps", "30000", "--run-dir", "cartpole")
    assert "native" in trained, trained
    evaluation = json.loads(installed.run("surefoot", "evaluate", "cartpole", "--json"))
    assert evaluation["mean_reward"] > 100, evaluation
    installed.run("surefoot", "verify", "CartPole-v1")
    small = ("--rollout.num_steps", "64", "--ppo.batch_size", "64", "--train.eval_episodes", "1")
    cheetah = installed.run("surefoot", "train", "HalfCheetah-v5", "--steps", "1024", *small, "--run-dir", "cheetah")
    assert "native" in cheetah, cheetah
    installed.run("surefoot", "report", "cartpole", "cheetah", "--output", "report.html")
    assert (installed.folder / "report.html").stat().st_size > 10_000


def check_errors(installed: Installed) -> None:
    """What a plain environment lacks is named: a compiler, an extra."""
    installed.run("surefoot", "native", "new", "my_env")
    assert "no C++ compiler found" in installed.run("surefoot", "native", "build", "my_env.cpp", code=2)
    export = ("surefoot", "export", "cartpole", "--onnx", "policy.onnx")
    assert "pip install 'surefoot[onnx]'" in installed.run(*export, code=2)
    installed.pip("surefoot[onnx]")
    installed.run(*export)


def check_types(installed: Installed) -> None:
    """A script with type annotations passes `mypy --strict`, and runs."""
    installed.pip("mypy")
    script = installed.folder / "user_script.py"
    script.write_bytes((ROOT / "tests" / "wheel" / "user_script.py").read_bytes())
    installed.run("mypy", "--strict", script.name)
    installed.run("python", script.name)


def main(wheel: Path) -> None:
    """All checks."""
    check_contents(wheel)
    with tempfile.TemporaryDirectory() as folder:
        installed = Installed(wheel, Path(folder))
        check_training(installed)
        check_errors(installed)
        check_types(installed)
    print(f"{wheel.name} works in a plain virtual environment without a compiler")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
