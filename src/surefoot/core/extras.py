"""Optional dependencies (extras of pyproject.toml): how to install one that is missing."""

from pathlib import Path

_SOURCE = Path(__file__).parents[3]


def install_hint(extra: str) -> str:
    """The command that installs an extra from a checkout: Surefoot is not on a package index.

    An editable install stays editable.
    """
    editable = "--editable " if (_SOURCE / "pyproject.toml").is_file() else ""
    return f"run `pip install --constraint constraints.txt {editable}'.[{extra}]'` in Surefoot's source directory"
