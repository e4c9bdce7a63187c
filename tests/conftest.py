"""What all tests share."""

import signal

import torch


def pytest_configure() -> None:
    """One torch thread a process: on a busy machine small networks lose twentyfold to threads that wait for another.

    Signals are heard also where the tests are a shell's background job or run under nohup, which ignore them.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
