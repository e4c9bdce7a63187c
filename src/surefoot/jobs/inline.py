"""Jobs in this process: nothing is imported again, and a debugger sees them. A crash takes everything with it."""

import queue
import threading
from collections.abc import Iterator

from surefoot.jobs.job import Job, Message, result_of
from surefoot.output.failures import brief


class InlineStream:
    """A job in a thread."""

    def __init__(self, job: Job) -> None:
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        threading.Thread(target=self._work, args=(job,), daemon=True).start()

    def __iter__(self) -> Iterator[Message]:
        while True:
            message = self._messages.get()
            yield message
            if "progress" not in message:
                return

    def ask_to_stop(self) -> None:
        """The signal reached this process, and with it the job."""

    def kill(self) -> None:
        """A thread cannot be ended; it works until the process ends."""

    def _work(self, job: Job) -> None:
        try:
            last = result_of(job, lambda progress: self._messages.put({"progress": progress}))
        except BaseException as error:  # a process of its own would end: SystemExit after a signal
            last = {"error": brief(error)}
        self._messages.put(last)


class InlineBackend:
    """Threads of this process; for one job at a time, because runs share the number of PyTorch's threads."""

    def start(self, job: Job) -> InlineStream:
        """Start a job."""
        return InlineStream(job)

    def close(self) -> None:
        """Nothing to release."""
