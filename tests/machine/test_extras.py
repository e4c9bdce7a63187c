"""Extras that messages name exist, and the commands that install them work from a checkout and with a wheel."""

import ast
import tomllib
from pathlib import Path

import surefoot
from surefoot.machine import extras
from surefoot.machine.extras import install_hint

ROOT = Path(__file__).parents[2]
SOURCES = sorted(folder for name in ("src", "benchmarks") for folder in (ROOT / name).rglob("*.py"))
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def named_extras() -> set[str]:
    """The argument of every call of `install_hint`, which must be a literal to be found."""
    calls = [node for file in SOURCES for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return {
        ast.literal_eval(call.args[0])
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == install_hint.__name__
    }


def test_every_extra_that_a_message_names_exists() -> None:
    assert {"onnx", "wandb", "envpool", "pettingzoo", "peers"} <= named_extras() <= set(EXTRAS)


def test_only_the_hint_names_the_command() -> None:
    assert [file.name for file in SOURCES if "surefoot[" in file.read_text()] == ["extras.py"]


def test_the_command_keeps_an_editable_install_editable() -> None:
    command = "run `pip install --constraint constraints.txt --editable '.[onnx]'` in Surefoot's source directory"
    assert Path(surefoot.__file__).is_relative_to(ROOT)
    assert install_hint("onnx") == command


def test_the_command_adds_packages_to_an_installed_wheel(monkeypatch, tmp_path) -> None:
    """Where there is no source directory; `make wheel` tries it."""
    monkeypatch.setattr(extras, "_SOURCE", tmp_path)
    assert install_hint("onnx") == "run `pip install 'surefoot[onnx]'`"


def test_the_extra_of_pettingzoo_brings_what_its_preset_needs() -> None:
    assert "mpe2" in EXTRAS["pettingzoo"]


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(surefoot.__file__).parent / "py.typed").is_file()
