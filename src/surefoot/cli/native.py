"""`surefoot native new NAME [--mujoco]`, `surefoot native build FILE`"""

import re
from collections.abc import Callable
from pathlib import Path

from surefoot.cli.arguments import parse
from surefoot.cli.lines import tell_next
from surefoot.errors import ConfigError
from surefoot.settings.registry import nearest

TEMPLATE, ROBOT = "my_env", "my_robot"
"""The names of the files to begin with: of any env, and of one around a MuJoCo model."""


def main(arguments: list[str]) -> int:
    """Dispatch to `new` or `build`."""
    commands: dict[str, Callable[..., int]] = {"new": new, "build": build}
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: surefoot native new NAME [--mujoco]\n       surefoot native build FILE [--output FILE]")
        print("\nWrite or build your own environment in C++ (docs/extend/native_env.md).")
        return 0 if arguments else 2
    if arguments[0] not in commands:
        raise ConfigError(
            f"unknown command 'native {arguments[0]}'{nearest(arguments[0], commands)} (known: new, build)"
        )
    return parse(commands[arguments[0]], f"native {arguments[0]}", arguments[1:])


def new(name: str, /, mujoco: bool = False) -> int:
    """Write a small environment in C++, its Python twin and a test of both to the current folder.

    Args:
        name: name of the files, in lower case, such as my_env
        mujoco: write a robot around a MuJoCo model, with the model
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ConfigError(f"'{name}' is not a name in lower case with letters, digits and _, such as my_env")
    written = {Path(file): text for file, text in _renamed(ROBOT if mujoco else TEMPLATE, name).items()}
    existing = [str(path) for path in written if path.exists()]
    if existing:
        raise ConfigError(f"{', '.join(existing)} already exists here; choose another name")
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    tell_next(("surefoot", "native", "build", f"{name}.cpp"))
    return 0


def _renamed(template: str, name: str) -> dict[str, str]:
    """The files of a template by their names, and its test, which is the same for all."""
    from surefoot.native.building import template_folder

    files = [*sorted(template_folder().glob(f"{template}.*")), template_folder() / f"test_{TEMPLATE}.py"]
    renamed = {}
    for file in files:
        old = TEMPLATE if file.name.startswith("test_") else template
        text = file.read_text(encoding="utf-8").replace(_class_name(old), _class_name(name)).replace(old, name)
        renamed[file.name.replace(old, name)] = text
    return renamed


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def build(source: Path, /, output: Path | None = None) -> int:
    """Compile environments in C++ into a library that train, verify and envs take by its path.

    Args:
        source: a C++ file
        output: the library to write; the source's name with .so if not given
    """
    from surefoot.native.building import build as compile_library

    path = compile_library(source, output)
    shown = str(path) if path.is_absolute() else f"./{path}"
    print(f"built {shown}")
    tell_next(("surefoot", "verify", shown), ("surefoot", "train", shown))
    return 0
