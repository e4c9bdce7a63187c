"""Runs jobs side by side, starts those again whose process died or hung, and hands out what they say."""

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from surefoot.jobs.job import Backend, Job, JobDiedError, JobError, Message, Stream

MOST_DEATHS = 10
"""Deaths of a job's process in a row, without a new highest `step` in between, after which the job has failed."""
_TICK_S = 0.2


@dataclass(frozen=True)
class Event:
    """What happened to a job: one of the four."""

    job: Job
    progress: dict[str, Any] | None = None
    result: Any = None
    error: JobError | None = None
    death: str = ""
    """Why its process died or was killed; it is started again, unless all jobs were asked to stop."""

    @property
    def is_last(self) -> bool:
        """Whether the job is done or has failed."""
        return self.progress is None and not self.death


@dataclass
class _Running:
    job: Job
    stream: Stream
    heard: float = field(default_factory=time.monotonic)
    deaths: int = 0
    step: float = -math.inf
    stopped: bool = False
    hung: bool = False


class Pool:
    """At most `slots` jobs at a time, in the order in which they were submitted."""

    def __init__(self, backend: Backend, slots: int, patience_s: float) -> None:
        self._backend, self._slots, self._patience_s = backend, slots, patience_s
        self._waiting: deque[Job] = deque()
        self._running: dict[str, _Running] = {}
        self._is_stopping = False
        self._heard: queue.SimpleQueue[tuple[_Running, Message | Exception]] = queue.SimpleQueue()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        """End the jobs that still run at once; they continue where they stopped when they are started again."""
        for running in self._running.values():
            running.stream.kill()
        self._backend.close()

    def submit(self, job: Job) -> None:
        """Run a job as soon as there is a slot; its name must differ from those that run or wait."""
        self._waiting.append(job)

    def stop(self, name: str) -> None:
        """End a job that nobody needs any more, or forget one that waits; it has no last event."""
        self._waiting = deque(job for job in self._waiting if job.name != name)
        if name in self._running:
            running = self._running.pop(name)
            running.stopped = True
            running.stream.kill()

    def events(self, is_stopped: Callable[[], bool] = lambda: False) -> Iterator[Event]:
        """Everything that happens until all jobs are done; meanwhile others can be submitted and stopped.

        Once `is_stopped` is true, jobs that run are asked to stop, and those that wait are forgotten.
        """
        while self._waiting or self._running:
            if not self._is_stopping and is_stopped():
                self._ask_to_stop()
            while self._waiting and len(self._running) < self._slots:
                self._start(self._waiting.popleft())
            self._kill_the_silent()
            try:
                running, said = self._heard.get(timeout=_TICK_S)
            except queue.Empty:
                continue
            if not running.stopped:
                yield self._event(running, said)

    def _ask_to_stop(self) -> None:
        self._is_stopping = True
        self._waiting.clear()
        for running in self._running.values():
            running.stream.ask_to_stop()

    def _event(self, running: _Running, said: Message | Exception) -> Event:
        running.heard, job = time.monotonic(), running.job
        if isinstance(said, JobDiedError):
            return self._after_death(running, said)
        if isinstance(said, Exception):
            raise said
        if "progress" in said:
            self._note_step(running, said["progress"])
            return Event(job, progress=said["progress"])
        del self._running[job.name]
        if "error" in said:
            return Event(job, error=JobError(f"{job.name}: {said['error']}"))
        return Event(job, result=said["result"])

    def _note_step(self, running: _Running, progress: dict[str, Any]) -> None:
        """A job that dies at the same place every time says the same things again: that is not progress."""
        step = progress.get("step")
        if isinstance(step, int | float) and step > running.step:
            running.step, running.deaths = step, 0

    def _after_death(self, running: _Running, death: JobDiedError) -> Event:
        job, deaths = running.job, running.deaths + 1
        why = f"it said nothing for {self._patience_s:g} s and was killed" if running.hung else str(death)
        if self._is_stopping:
            del self._running[job.name]
            return Event(job, death=why)
        if deaths == MOST_DEATHS:
            del self._running[job.name]
            return Event(job, error=JobError(f"{job.name}: died {deaths} times in a row: {why}"))
        self._start(job, deaths, running.step)
        return Event(job, death=why)

    def _start(self, job: Job, deaths: int = 0, step: float = -math.inf) -> None:
        running = _Running(job, self._backend.start(job), deaths=deaths, step=step)
        self._running[job.name] = running
        threading.Thread(target=self._listen, args=(running,), daemon=True).start()

    def _listen(self, running: _Running) -> None:
        try:
            for message in running.stream:
                self._heard.put((running, message))
        except Exception as error:
            self._heard.put((running, error))

    def _kill_the_silent(self) -> None:
        for running in self._running.values():
            if time.monotonic() - running.heard > self._patience_s and not running.hung:
                running.hung = True
                running.stream.kill()
