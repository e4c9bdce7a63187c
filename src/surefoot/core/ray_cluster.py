"""Ray, started or connected to once per process. Importing this module does not import Ray."""

import os
import signal
import socket
import threading
from typing import Any

from surefoot.core.cores import available_cores
from surefoot.core.errors import ClusterError
from surefoot.core.extras import install_hint
from surefoot.core.failures import brief

_OBJECT_STORE_BYTES = 100_000_000
"""Messages are small; Ray itself would take a third of the memory."""
_ANSWER_S = 5.0


class RayCluster:
    """A connection to the cluster at an address, or a Ray of this machine that ends with it.

    If this process is already connected, that connection is used and stays open.
    """

    def __init__(self, address: str | None = None) -> None:
        self.ray = _import_ray()
        self._is_own = not self.ray.is_initialized()
        if self._is_own:
            self._connect(address)

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """The nodes that are alive, as Ray describes them."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def close(self) -> None:
        """Disconnect; a Ray that was started here ends."""
        if self._is_own:
            self._is_own = False
            self.ray.shutdown()

    def _connect(self, address: str | None) -> None:
        if address is not None:
            _refuse_silent(address)
        # A local address keeps RAY_ADDRESS from leading to a cluster that nobody asked for.
        where: dict[str, Any] = {"address": address}
        if address is None:
            where = {"address": "local", "num_cpus": available_cores(), "object_store_memory": _OBJECT_STORE_BYTES}
            where |= {"include_dashboard": False}
        handler = signal.getsignal(signal.SIGTERM)
        try:
            self.ray.init(**where, log_to_driver=False, configure_logging=False, logging_level="ERROR")
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, handler)  # Ray's would end a run without saving it
        except Exception as error:
            what = "Ray cannot be started" if address is None else f"cannot connect to the Ray cluster at {address}"
            raise ClusterError(f"{what}: {brief(error)}") from error


def _refuse_silent(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if address == "auto":
        return
    if "/" in host or not host or not port.isdecimal():
        raise ClusterError(f"'{address}' is not the address of a Ray cluster; pass HOST:PORT of its head node, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {brief(error)}") from error


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray announces a change of this default with a warning.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise ClusterError(f"the backend ray requires Ray; {install_hint('ray')}") from error
    return ray
