"""Ray, started or connected to once per process; the only place that imports it, on first use."""

import importlib
import os
import signal
import socket
import threading
import time
import weakref
from dataclasses import dataclass
from typing import Any

from surefoot.errors import ClusterError
from surefoot.machine.cores import available_cores
from surefoot.machine.extras import install_hint
from surefoot.output.failures import brief

INLINE_BYTES = 2**24
"""Values below this travel with Ray's calls and answers instead of through its object store (Ray's own limit: 100 KiB).

If the raylet dies while a process reads or writes the store, Ray ends that process; a call raises an error.
"""
INLINED = {
    "RAY_max_direct_call_object_size": str(INLINE_BYTES),
    "RAY_task_rpc_inlined_bytes_limit": str(4 * INLINE_BYTES),  # of all arguments, or all results, of a call
}
"""Environment variables of every process that sends or receives such values."""
_CONNECT_S = 20
"""How long Ray's client waits for the first answer of a cluster (Ray's own limit: 30)."""
_ENVIRONMENT = {
    **INLINED,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_py_gcs_connect_timeout_s": str(_CONNECT_S),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about GPUs
    "RAY_memory_monitor_refresh_ms": "0",  # on one machine, Ray would kill actors because other programs need memory
}
_OBJECT_STORE_BYTES = 2**30
"""Limit of the object store of a local cluster; the system allocates only what is used, and Ray spills the rest."""
RUNNING = "auto"
"""The address of a cluster that runs on this machine, or that RAY_ADDRESS names."""
_ANSWER_S = 5.0
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a client of HTTP/2, and so of gRPC, begins (RFC 9113, 3.4): with this and an empty frame of settings."""
_LOOK = socket.MSG_DONTWAIT | socket.MSG_PEEK
_FRAME_BYTES, _SETTINGS = 9, 4
"""The head of a frame, and the type of the first one that a server sends; the type is its fourth byte."""


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
        self._raylet = _connected(self.ray)
        if self._raylet is not None:  # also for those who do not close the cluster
            weakref.finalize(self, self._raylet.close)

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

    def check_alive(self) -> None:
        """Refuse to continue without the head node or the raylet of this machine.

        Ray would end this process without an exception, or wait forever.
        """
        lost = "its raylet on this machine ended" if self._raylet is not None and _has_ended(self._raylet) else ""
        host, _, port = str(self.ray.get_runtime_context().gcs_address).rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
        except ConnectionRefusedError:
            lost = "its head node ended"
        except OSError:  # a slow network is Ray's concern
            pass
        if lost:
            raise ClusterError(f"the Ray cluster was lost: {lost}; start it again, then resume the run")

    def close(self) -> None:
        """Disconnect; a Ray that was started here ends."""
        if self._raylet is not None:
            self._raylet.close()
            self._raylet = None
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


def _connected(ray: Any) -> socket.socket | None:
    """A connection to the raylet of this machine, on which nobody speaks: it ends when the raylet does."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(ray._private.worker.global_worker.node.raylet_socket_name)
    except (OSError, AttributeError):  # the name is not part of Ray's public interface
        connection.close()
        return None
    return connection


def _has_ended(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, _LOOK)
    except BlockingIOError:  # nothing was said, and nobody hung up
        return False
    except OSError:
        return True


def _cores(node: dict[str, Any]) -> float:
    return float(node["Resources"].get("CPU", 0))


def _refuse_silent(address: str) -> None:
    """Ray itself would try for minutes where nothing, or something else, listens."""
    if address == RUNNING:
        address = os.environ.get("RAY_ADDRESS", RUNNING)
        if "/" in address or ":" not in address:
            return
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        raise ClusterError(f"'{address}' is not the address of a Ray cluster; pass HOST:PORT of its head node, or auto")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S) as connection:
            answer = _greeted(connection)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ClusterError(
            f"no Ray cluster answers at {address} ({brief(error)}); check the address with `ray status`"
        ) from error
    if len(answer) < _FRAME_BYTES or answer[3] != _SETTINGS:
        raise ClusterError(f"the program at {address} is not a Ray cluster; check the address with `ray status`")
    _refuse_other(address)


def _refuse_other(address: str) -> None:
    """Other servers of HTTP/2 do not answer the first question of Ray's own client; it waits _CONNECT_S."""
    try:
        client = importlib.import_module("ray._raylet").GcsClient
    except (ImportError, AttributeError):  # it is not part of Ray's public interface
        return
    try:
        client(address=address)
    except Exception as error:  # Ray raises errors of many kinds, some of gRPC
        raise ClusterError(
            f"the program at {address} does not answer like a Ray cluster ({brief(error)}); check the address with"
            " `ray status`"
        ) from error


def _greeted(connection: socket.socket) -> bytes:
    """The beginning of what a server answers to a client of gRPC."""
    deadline, answer = time.monotonic() + _ANSWER_S, b""
    connection.sendall(_HELLO)
    while len(answer) < _FRAME_BYTES:
        connection.settimeout(max(1e-3, deadline - time.monotonic()))
        piece = connection.recv(_FRAME_BYTES - len(answer))
        if not piece:
            break
        answer += piece
    return answer


def _import_ray() -> Any:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ClusterError(f"the package ray is missing; {install_hint('ray')}") from error
