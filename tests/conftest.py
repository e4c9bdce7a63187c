"""What all tests share."""

import signal

import pytest
import torch


def pytest_configure() -> None:
    """One torch thread a process: on a busy machine small networks lose twentyfold to threads that wait for another.

    Signals are heard also where the tests are a shell's background job or run under nohup, which ignore them.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what their module has prepared run in one process, so that it is prepared once."""
    for item in items:
        defined = getattr(item, "_fixtureinfo", None)
        scopes = {} if defined is None else defined.name2fixturedefs
        is_shared = any(one.scope == "module" for each in scopes.values() for one in each)
        if is_shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
