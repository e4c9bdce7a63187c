"""The process of a job: `python -m surefoot.jobs.child` reads the job from stdin and writes its messages to stdout.

If stdin is closed, the process that wants the result is gone: the job is asked to stop, as by Ctrl-C, and a run saves
itself.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from typing import IO

from surefoot.core.errors import SurefootError
from surefoot.core.failures import brief
from surefoot.jobs.job import Job, Message

GRACE_S = 60.0
"""How long a job may take to stop once nobody waits for it."""


def main() -> int:
    """Run the job and send its messages."""
    answers = _own_stdout()
    job = Job(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    lock = threading.Lock()

    def send(message: Message) -> None:
        with lock:
            answers.write(json.dumps(message) + "\n")
            answers.flush()

    try:
        module, _, function = job.task.partition(":")
        task = getattr(importlib.import_module(module), function)
        send({"result": task(job.arguments, lambda progress: send({"progress": progress}))})
    except SurefootError as error:
        send({"error": str(error)})
    except Exception as error:
        traceback.print_exc()
        send({"error": brief(error)})
    return 0


def _own_stdout() -> IO[str]:
    """What a job prints goes to stderr, so that only messages come through stdout."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _stop_with_parent() -> None:
    while sys.stdin.read(65536):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
