"""What `surefoot` exports: importable, documented, and without waiting for torch."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import surefoot

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "extend").glob("*.md"))]


@pytest.mark.parametrize("name", surefoot.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from surefoot import {name}", namespace)
    found = namespace[name]
    assert found is getattr(surefoot, name)
    if isinstance(found, type):
        assert found.__name__ == name
        assert found.__doc__


@pytest.mark.parametrize("name", [name for name in surefoot.__all__ if name != "__version__"])
def test_every_name_is_documented(name: str) -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert any(re.search(rf"\bsurefoot\.{name}\b|from surefoot import [\w, ]*\b{name}\b", text) for text in texts)


def test_dir_lists_what_is_exported() -> None:
    assert dir(surefoot) == sorted(surefoot.__all__)
    assert len(set(surefoot.__all__)) == len(surefoot.__all__)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'surefoot' has no attribute 'Critc'"):
        surefoot.Critc  # noqa: B018
    with pytest.raises(ImportError, match="Critc"):
        exec("from surefoot import Critc")


def test_types_are_marked_as_such() -> None:
    assert (Path(surefoot.__file__).parent / "py.typed").exists()


def test_importing_it_does_not_import_torch() -> None:
    unwanted = ("torch", "gymnasium", "ray", "optuna")
    code = f"import sys, surefoot; dir(surefoot); print([name for name in {unwanted} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_type_checkers_see_the_same_names() -> None:
    """Names are imported on first use, so that the ones for type checkers are written a second time."""
    source = Path(surefoot.__file__).read_text(encoding="utf-8")
    typed = re.findall(r"^    from ([\w.]+) import (\w+) as \2$", source, re.MULTILINE)
    lazy = re.findall(r'^    "(\w+)": "([\w.]+)",$', source, re.MULTILINE)
    assert sorted((name, home) for home, name in typed) == sorted(lazy)
    assert {name for name, _ in lazy} | {"__version__"} == set(surefoot.__all__)
