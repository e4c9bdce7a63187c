"""Print the type stub of the compiled core, formatted like the project: `make stub` writes it, a test compares it."""

import re
import subprocess
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

from surefoot.native import core

STUB = "src/surefoot/native/_core.pyi"


def main() -> None:
    """The module is loaded by `core()`, which loads MuJoCo's library before it."""
    generator = StubGen(core(), quiet=True)
    generator.put(core())
    one_line = re.compile(r'^( *)"{3}\n *(\S.{0,104})\n *"{3}$', re.MULTILINE)
    text = one_line.sub(r'\1"""\2"""', generator.get())
    ruff = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", STUB, "-"]
    subprocess.run(ruff, input=text, text=True, check=True)


if __name__ == "__main__":
    main()
