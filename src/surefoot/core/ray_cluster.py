"""Connects to a Ray cluster, or starts one on this machine; the only place that imports `ray`."""

import importlib
import os
import socket
from dataclasses import dataclass
from typing import Any

from surefoot.core.cores import available_cores
from surefoot.core.errors import ConfigError, EnvError
from surefoot.core.extras import install_hint
from surefoot.core.failures import brief

_CONNECT_S = 10.0
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a warning about GPUs
    "RAY_memory_monitor_refresh_ms": "0",  # on one machine, Ray would kill actors because other programs need memory
}
_OBJECT_STORE_BYTES = 2**30
"""Limit of the object store of a local cluster; the system allocates only what is used, and Ray spills the rest."""


@dataclass(frozen=True)
class Node:
    """A living machine of the cluster that can run actors."""

    id: str
    host: str


def ray_cluster(address: str | None) -> Any:
    """The module `ray`, connected: to what this process already uses, to `address`, or to a new local cluster."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError([f"rollout.engine: the package ray is missing; {install_hint('ray')}"]) from error
    if address is not None:
        _check_address(address)
    if ray.is_initialized():
        return ray
    settings: dict[str, Any] = {"address": address}
    if address is None:
        settings = {
            "address": "local",
            "num_cpus": available_cores(),
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
        }
    try:
        ray.init(**settings, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises errors of many kinds, some of gRPC
        raise _unreachable(address or "this machine", error) from error
    return ray


def _check_address(address: str) -> None:
    """Refuse an address where nothing listens at once: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise ConfigError(
            ["rollout.engine.address: must be host:port or auto; run the training on a machine of the cluster"]
        )
    if port.isdecimal():
        try:
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> EnvError:
    return EnvError(f"no Ray cluster at {address} ({brief(error)}); check rollout.engine.address and `ray status`")


def on_node(node: Node) -> Any:
    """Schedules an actor on a node, or elsewhere if that node is lost or full."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node.id, soft=True)


def nodes(ray: Any) -> list[Node]:
    """The nodes that have a CPU for actors, in a fixed order."""
    living = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    return sorted((Node(node["NodeID"], node["NodeManagerHostname"]) for node in living), key=lambda node: node.id)
