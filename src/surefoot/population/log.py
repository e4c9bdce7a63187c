"""`population.jsonl`: one line per round and member, without times: the same population writes the same file."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from surefoot.errors import PopulationError
from surefoot.settings.ranges import Scalar
from surefoot.storage.files import open_own, read_regular

_REMEDY = "remove this line and all after it, and resume: the rounds are decided again from the results of the members"


_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
T = TypeVar("T")
Value = Scalar | None
Interval = Annotated[list[float], Field(min_length=2, max_length=2)]


@with_config(_STRICT)
@dataclass(frozen=True)
class Outcome:
    """What a member achieved in a round; one with an error has no state to continue from."""

    score: float | None
    interval: Interval | None
    hash: str
    step: Annotated[int, Field(ge=0)]
    is_done: bool
    used: dict[str, Value]
    error: str

    @staticmethod
    def failed(error: str) -> "Outcome":
        """Of a member that failed."""
        return Outcome(None, None, "", 0, False, {}, error)


@with_config(_STRICT)
@dataclass(frozen=True)
class Entry:
    """A member in a round: what it trained with, how it scored, and how it continues."""

    round: Annotated[int, Field(ge=1)]
    member: Annotated[int, Field(ge=0)]
    score: float | None
    interval: Interval | None
    """95% bootstrap interval of the score."""
    hash: str
    """SHA-256 of the policy at the end of the round; empty if the member failed."""
    step: Annotated[int, Field(ge=0)]
    values: dict[str, Value]
    """Values of the tunables in this round."""
    used: dict[str, Value]
    """The values as the trainer used them in the first update of the round, after schedules."""
    parent: Annotated[int, Field(ge=0)]
    """The member whose state it continues from; its own number if it keeps its state."""
    next_values: dict[str, Value]
    """Values in the next round."""
    error: str = ""
    """Why it failed in this round."""

    @property
    def has_failed(self) -> bool:
        """Whether it has no state at the end of the round."""
        return bool(self.error)


_CHECKS: dict[type[Any], TypeAdapter[Any]] = {cls: TypeAdapter(cls) for cls in (Entry, Outcome)}


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
            kept = self._path.read_bytes().split(b"\n")[: sum(map(len, self.read()))]
            complete = sum(len(line) + 1 for line in kept)
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
    for number, line in enumerate(read_regular(path).split(b"\n")[:-1], 1):  # what follows the last newline is torn
        try:
            entries.append(parsed(Entry, line))
        except ValueError as error:
            raise PopulationError(f"{path}: line {number} is damaged ({error}); {_REMEDY}") from error
    members = members or 1 + max((entry.member for entry in entries), default=0)
    rounds = [entries[begin : begin + members] for begin in range(0, len(entries), members)]
    for number, found in enumerate(rounds, 1):
        if any((one.round, one.member) != (number, place) or one.parent >= members for place, one in enumerate(found)):
            raise PopulationError(f"{path}: round {number} must have one line per member ({members}); {_REMEDY}")
    return [found for found in rounds if len(found) == members]


def parsed(cls: type[T], text: bytes) -> T:
    """A record of a type from its JSON, or a ValueError of one line."""
    try:
        found: T = _CHECKS[cls].validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{where}: {problem['msg']}" if where else problem["msg"]) from error
    return found


def _text(entries: Sequence[Entry]) -> bytes:
    return "".join(json.dumps(asdict(entry), allow_nan=False) + "\n" for entry in entries).encode()
