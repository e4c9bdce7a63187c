"""The process that a subject lives in: `python -m surefoot.benchmark.host`, commands and answers as lines of JSON.

It leads a session of its own. When whoever started it is gone, however that happened, it ends with all it started.
"""

import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict
from typing import IO, Any

from surefoot.benchmark.checkout import import_from_checkout
from surefoot.benchmark.subject import Recipe, Subject
from surefoot.errors import SurefootError

GRACE_S = 5.0
"""What a subject has to close itself before its processes are killed."""


def main() -> int:
    """Build what the first command says, then run and answer until told to close."""
    # Background jobs of a shell ignore it, and so would we: it is how a subject is told to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers = _own_stdout()
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    subject: Subject | None = None
    try:
        subject = build_subject(commands.get()["build"])
        _answer(answers, {"engine": getattr(subject, "engine", None)})
        while "run" in (command := commands.get()):
            _answer(answers, asdict(subject.run(command["run"])))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        traceback.print_exc()
        _answer(answers, {"error": describe(error)})
        return 1
    finally:
        if subject is not None:
            subject.close()
    return 0


def build_subject(recipe: Recipe) -> Subject:
    """The subject of a recipe."""
    from surefoot.benchmark.configured import Collecting, Replaying, Training
    from surefoot.settings.layers import build_config

    if recipe["kind"].startswith("benchmarks."):  # other systems: only a checkout has them
        built: Subject = import_from_checkout(recipe["kind"]).build(recipe)
        return built
    kinds: dict[str, type[Training]] = {"training": Training, "collecting": Collecting, "limit": Replaying}
    return kinds[recipe["kind"]](build_config(recipe["config"]))


def describe(error: Exception) -> str:
    """One line; typed errors speak for themselves."""
    text = str(error) if isinstance(error, SurefootError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def _own_stdout() -> IO[str]:
    """The pipe for answers; what subjects and their processes print goes to stderr instead."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _answer(answers: IO[str], content: dict[str, Any]) -> None:
    print(json.dumps(content), file=answers, flush=True)


def _listen(commands: "queue.Queue[dict[str, Any]]") -> None:
    """Pass commands on; the end of the pipe means that nobody wants an answer any more."""
    # Unbuffered: a buffer's lock, held by a waiting thread, would end the interpreter with a fatal error.
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        while line := pipe.readline():
            commands.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_S)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
