"""The process of a job: `python -m surefoot.jobs.child` reads the job from stdin and writes its messages to stdout.

If stdin is closed, the process that wants the result is gone: the job is asked to stop, as by Ctrl-C, and a run saves
itself.
"""

import json
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import IO

from surefoot.jobs.job import Job, Message, result_of

GRACE_S = 60.0
"""How long a job may take to stop once nobody waits for it."""


def main() -> int:
    """Run the job and send its messages."""
    answers = _own_stdout()
    with os.fdopen(os.dup(0), encoding="utf-8") as given:
        job = Job(**json.loads(given.readline()))
    lock, is_done = threading.Lock(), threading.Event()
    threading.Thread(target=_stop_with_parent, args=(is_done,), daemon=True).start()

    def send(message: Message) -> None:
        with lock, suppress(BrokenPipeError):  # nobody listens: the job is about to be stopped
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    send(result_of(job, lambda progress: send({"progress": progress})))
    is_done.set()
    return 0


def _own_stdout() -> IO[str]:
    """What a job prints goes to stderr, so that only messages come through stdout."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _stop_with_parent(is_done: threading.Event) -> None:
    while os.read(0, 65536):  # not through sys.stdin: its lock, held at exit, would abort the process
        pass
    if not is_done.is_set():
        os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
