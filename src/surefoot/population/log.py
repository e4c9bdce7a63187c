"""`population.jsonl`: one line per round and member, without times: the same population writes the same file."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from surefoot.core.errors import PopulationError
from surefoot.core.files import open_own


@dataclass(frozen=True)
class Entry:
    """A member in a round: what it trained with, how it scored, and how it continues."""

    round: int
    member: int
    score: float | None
    interval: list[float] | None
    """95% bootstrap interval of the score."""
    hash: str
    """SHA-256 of the policy at the end of the round; empty if the member failed."""
    step: int
    values: dict[str, Any]
    """Values of the tunables in this round."""
    used: dict[str, Any]
    """The values as the trainer used them in the first update of the round, after schedules."""
    parent: int
    """The member whose state it continues from; its own number if it keeps its state."""
    next_values: dict[str, Any]
    """Values in the next round."""
    error: str = ""
    """Why it failed in this round."""

    @property
    def has_failed(self) -> bool:
        """Whether it has no state at the end of the round."""
        return bool(self.error)


class PopulationLog:
    """Complete rounds; a round that was cut off is not one."""

    def __init__(self, path: Path, members: int) -> None:
        self._path, self._members = path, members

    def read(self) -> list[list[Entry]]:
        """All complete rounds, in order."""
        return read_rounds(self._path, self._members)

    def append(self, entries: Sequence[Entry]) -> None:
        """Add a round at once, in place of one that was cut off, and wait until it is on the disk."""
        descriptor = open_own(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            complete = len(_text([entry for entries in self.read() for entry in entries]))
            os.ftruncate(descriptor, complete)
            try:
                data = memoryview(_text(entries))
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, complete)
                raise
        finally:
            os.close(descriptor)


def read_rounds(path: Path, members: int | None = None) -> list[list[Entry]]:
    """The complete rounds of a log; an incomplete last one is left out."""
    if not path.is_file():
        return []
    entries = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):  # what follows the last newline is torn
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise PopulationError(f"{path}: line {number} is damaged ({error}); remove it and all after it") from error
    members = members or 1 + max((entry.member for entry in entries), default=0)
    rounds = [entries[begin : begin + members] for begin in range(0, len(entries), members)]
    for number, found in enumerate(rounds, 1):
        if any(entry.round != number or entry.member != member for member, entry in enumerate(found)):
            raise PopulationError(f"{path}: the lines of round {number} are not those of {members} members")
    return [found for found in rounds if len(found) == members]


def _text(entries: Sequence[Entry]) -> bytes:
    return "".join(json.dumps(asdict(entry), allow_nan=False) + "\n" for entry in entries).encode()
