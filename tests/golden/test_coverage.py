import importlib
import pkgutil

from . import __path__ as folder
from .cases import CASES, USED


def test_every_case_is_used_by_some_test():
    for module in pkgutil.iter_modules(folder):
        importlib.import_module(f"{__package__}.{module.name}")
    assert set(CASES) == USED
