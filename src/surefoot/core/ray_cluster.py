"""Ray, started or connected to once per process; the only place that imports it, on first use."""

import importlib
import os
import signal
import socket
import threading
from dataclasses import dataclass
from typing import Any

from surefoot.core.cores import available_cores
from surefoot.core.errors import ClusterError
from surefoot.core.extras import install_hint
from surefoot.core.failures import brief

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about GPUs
    "RAY_memory_monitor_refresh_ms": "0",  # on one machine, Ray would kill actors because other programs need memory
}
_OBJECT_STORE_BYTES = 2**30
"""Limit of the object store of a local cluster; the system allocates only what is used, and Ray spills the rest."""
_ANSWER_S = 10.0


@dataclass(frozen=True)
class Node:
    """A living machine of the cluster."""

    id: str
    host: str
    address: str
    cores: int


class RayCluster:
    """A connection to the cluster at an address, or a Ray of this machine that ends with it.

    If this process is already connected, that connection is used and stays open.
    """

    def __init__(self, address: str | None = None) -> None:
        self.ray = _import_ray()
        if address is not None:
            _refuse_silent(address)
        self._is_own = not self.ray.is_initialized()
        if self._is_own:
            self._connect(address)

    @property
    def nodes(self) -> list[Node]:
        """The machines that are alive, in a fixed order."""
        living = [node for node in self.ray.nodes() if node["Alive"]]
        found = (
            Node(one["NodeID"], one["NodeManagerHostname"], one["NodeManagerAddress"], int(_cores(one)))
            for one in living
        )
        return sorted(found, key=lambda node: node.id)

    def on(self, node: Node, soft: bool = True) -> Any:
        """Schedules on a node; if it is soft, elsewhere where that node is lost or full."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node.id, soft=soft)

    def close(self) -> None:
        """Disconnect; a Ray that was started here ends."""
        if self._is_own:
            self._is_own = False
            self.ray.shutdown()

    def _connect(self, address: str | None) -> None:
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
        except Exception as error:  # Ray raises errors of many kinds, some of gRPC
            what = "Ray cannot be started" if address is None else f"cannot connect to the Ray cluster at {address}"
            raise ClusterError(f"{what}: {brief(error)}") from error


def _cores(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0))


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
        raise ClusterError(
            f"no Ray cluster answers at {address} ({brief(error)}); check the address with `ray status`"
        ) from error


def _import_ray() -> Any:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ClusterError(f"the package ray is missing; {install_hint('ray')}") from error
