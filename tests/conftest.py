"""What all tests share."""

import signal

import cloudpickle
import pytest
import torch
from _pytest.nodes import coerce_node_id

import tests


def pytest_configure() -> None:
    """One torch thread a process: on a busy machine small networks lose twentyfold to threads that wait for another.

    Signals are heard also where the tests are a shell's background job or run under nohup, which ignore them.
    Workers get the classes of tests without their modules, which import torch.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    cloudpickle.register_pickle_by_value(tests)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that share what their module has prepared run in one process, so that it is prepared once.

    xdist 3.8 reads the group from the end of the test's id, where it cannot write it with pytest 9.2, so we do.
    """
    is_worker = config.getoption("loadgroup", False)
    for item in items:
        defined = getattr(item, "_fixtureinfo", None)
        scopes = {} if defined is None else defined.name2fixturedefs
        is_shared = any(one.scope == "module" for each in scopes.values() for one in each)
        group, own = item.nodeid.partition("::")[0] if is_shared else "", item.get_closest_marker("xdist_group")
        if is_worker and (group or own):
            item._id = coerce_node_id(f"{item.nodeid}@{own.args[0] if own else group}")  # type: ignore[attr-defined]
