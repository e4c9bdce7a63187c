"""What import-linter cannot see: it knows Python files, and `_core` is none."""

import ast
from pathlib import Path

import surefoot.native

SOURCE = Path(surefoot.native.__file__).parents[1]


def imported(path: Path) -> set[str]:
    """Names of modules, and of what is taken from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {f"{node.module}"}
    return names


def test_only_the_native_package_imports_the_compiled_module() -> None:
    users = {path for path in SOURCE.rglob("*.py") if any("native._core" in name for name in imported(path))}
    assert users == {SOURCE / "native" / "__init__.py"}
