"""A job and what it says while it runs."""

import importlib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from surefoot.errors import SurefootError
from surefoot.output.failures import brief

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

    A job that is restarted must continue where it stopped.
    """

    name: str
    task: str
    arguments: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    """Cores that it uses."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def result_of(job: Job, say: Say) -> Message:
    """Run a job in this process; returns its last message."""
    try:
        module, _, function = job.task.partition(":")
        task = getattr(importlib.import_module(module), function)
        return {"result": task(job.arguments, say)}
    except SurefootError as error:
        return {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"error": brief(error)}


class Stream(Protocol):
    """The messages of a running job. Iterating raises a JobDiedError if its process ends without a result."""

    def __iter__(self) -> Iterator[Message]:
        """All messages; the last one is a result or an error."""

    def ask_to_stop(self) -> None:
        """Ask the job to stop, as by Ctrl-C: a run saves itself, then the iteration ends."""

    def kill(self) -> None:
        """End the process at once; the iteration then ends too."""


class Backend(Protocol):
    """Where jobs run."""

    def start(self, job: Job) -> Stream:
        """Start the process of a job."""

    def close(self) -> None:
        """Release what the backend holds."""
