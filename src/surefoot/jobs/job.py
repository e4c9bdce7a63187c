"""A job and what it says while it runs."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from surefoot.core.errors import SurefootError

Message = dict[str, Any]
"""One entry: `progress`, `result`, or `error` with one line."""
Say = Callable[[dict[str, Any]], None]
"""Reports progress: plain data that JSON can hold. A number `step` that grows says that the job gets on."""


class JobError(SurefootError):
    """A job failed, and further attempts are useless."""


class JobDiedError(SurefootError):
    """The process of a job ended without a result: it was killed, crashed, or its machine was lost."""


@dataclass(frozen=True)
class Job:
    """A function of its arguments and a `Say`, named as `module:function`; it returns plain data.

    A job that is started again must go on where it stopped.
    """

    name: str
    task: str
    arguments: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    """Cores that it uses."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class Stream(Protocol):
    """The messages of a running job. Iterating raises a JobDiedError if its process ends without a result."""

    def __iter__(self) -> Iterator[Message]:
        """All messages; the last one is a result or an error."""

    def kill(self) -> None:
        """End the process at once; the iteration then ends too."""


class Backend(Protocol):
    """Where jobs run."""

    def start(self, job: Job) -> Stream:
        """Start the process of a job."""

    def close(self) -> None:
        """Release what the backend holds."""
