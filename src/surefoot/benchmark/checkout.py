"""Parts of the benchmarks that only a checkout of the repository has: the sides of other systems."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

from surefoot.errors import SurefootError

SOURCE = Path(__file__).parents[3]
"""The checkout that an editable install belongs to."""


def import_from_checkout(module: str) -> ModuleType:
    """A module of the folder `benchmarks`: of the checkout that Surefoot runs from, or of the current folder."""
    root = next(filter(_is_checkout, (SOURCE, Path.cwd())), None)
    if root is None:
        raise SurefootError(
            "bench peers and bench stepping compare other systems with code in the folder 'benchmarks' of Surefoot's"
            " repository, which is not part of the installed package; run the command in a checkout of the repository"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # processes of subjects inherit it
    return importlib.import_module(module)


def _is_checkout(folder: Path) -> bool:
    return all((folder / name).is_dir() for name in ("benchmarks/peers", "src/surefoot"))
