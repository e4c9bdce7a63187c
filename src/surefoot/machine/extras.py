"""Optional dependencies (extras of pyproject.toml): how to install one that is missing."""

from pathlib import Path

_SOURCE = Path(__file__).parents[3]


def install_hint(extra: str) -> str:
    """The command that installs an extra: in a checkout it keeps the install editable, elsewhere it adds packages."""
    if (_SOURCE / "pyproject.toml").is_file():
        return f"run `pip install --constraint constraints.txt --editable '.[{extra}]'` in Surefoot's source directory"
    return f"run `pip install 'surefoot[{extra}]'`"
