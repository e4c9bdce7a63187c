"""Jobs as tasks of a Ray cluster: on its node, each is a process as it is with the local backend."""

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from surefoot.errors import ClusterError, RunDirectoryError
from surefoot.jobs.job import Job, JobDiedError, Message
from surefoot.jobs.local import LocalStream
from surefoot.machine.ray_cluster import RayCluster
from surefoot.output.failures import brief

_LOOK_S = 60.0
"""How long a node may take to look for a file."""


class RayStream:
    """The messages of a job on some node."""

    def __init__(self, ray: Any, job: Job) -> None:
        self._ray = ray
        # Retried by the pool, which also says so.
        options = {"num_cpus": job.threads, "max_retries": 0, "num_returns": "streaming", "name": job.name}
        self._messages = ray.remote(_run).options(**options).remote(job.to_json())

    def __iter__(self) -> Iterator[Message]:
        try:
            for reference in self._messages:
                message: Message = self._ray.get(reference)
                if "death" in message:
                    raise JobDiedError(message["death"])
                yield message
                if "progress" not in message:
                    return
        except self._ray.exceptions.RayError as error:
            raise JobDiedError(f"its Ray task was lost: {brief(error)}") from error
        raise JobDiedError("its Ray task ended without a result")

    def ask_to_stop(self) -> None:
        """Its process sees that the task is gone, and stops as it does on one machine."""
        self.kill()

    def kill(self) -> None:
        """End the task at once; its process sees that nobody waits for it."""
        with suppress(self._ray.exceptions.RayError):
            self._ray.cancel(self._messages, force=True)


class RayBackend:
    """Nodes of a Ray cluster, or of a Ray that is started on this machine if there is no address."""

    def __init__(self, address: str | None = None) -> None:
        self._cluster = RayCluster(address)

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return sum(self._cores_by_node())

    def start(self, job: Job) -> RayStream:
        """Start a job on a node that has enough free cores, as soon as there is one."""
        largest = max(self._cores_by_node(), default=0)
        if job.threads > largest:
            raise ClusterError(
                f"{job.name} needs {job.threads} cores, but the largest node of the Ray cluster has {largest}; lower"
                " train.threads or raise the number of parallel jobs"
            )
        return RayStream(self._cluster.ray, job)

    def check_directory(self, path: Path) -> None:
        """Refuse a directory that is not the same on all nodes: a job may be restarted on any of them."""
        ray, token = self._cluster.ray, secrets.token_hex(8)
        file = path.resolve() / f".seen-by-all-nodes.{os.getpid()}"
        try:
            file.write_text(token, encoding="utf-8")
        except OSError as error:
            raise RunDirectoryError(f"{path} is not writable ({error.strerror}); choose another directory") from error
        look = ray.remote(num_cpus=0)(_read)
        try:
            for node in self._cluster.nodes:
                name, strategy = node.address, self._cluster.on(node, soft=False)
                if ray.get(look.options(scheduling_strategy=strategy).remote(str(file)), timeout=_LOOK_S) != token:
                    raise ClusterError(
                        f"{path} is not a directory that all nodes of the Ray cluster share: {name} cannot see it;"
                        " choose one on a shared file system"
                    )
        except ray.exceptions.RayError as error:
            raise ClusterError(f"the node {name} of the Ray cluster does not answer: {brief(error)}") from error
        finally:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.close()

    def _cores_by_node(self) -> list[int]:
        return [node.cores for node in self._cluster.nodes]


def _run(job: dict[str, Any]) -> Iterator[Message]:
    """On the node. A death is a message: Ray would wrap the exception."""
    try:
        yield from LocalStream(Job(**job))
    except JobDiedError as error:
        yield {"death": str(error)}


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError:
        return ""
