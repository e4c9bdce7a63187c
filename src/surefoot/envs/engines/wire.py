"""Messages between the `processes` engine and its workers over a socket.

A step is one byte each way: the group to step, and `DONE`. All other messages are rare and pickled, always between
processes of one run. When one side ends, the other sees the end of the stream.
"""

import pickle
import signal
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

MAX_GROUPS = 200
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or scheduler sends to all processes of a run; workers leave them to their parent."""
CALL = bytes([255])
DONE = b"."
RESULT = b"="
FAILURE = b"!"

_LENGTH = struct.Struct("!Q")
_PATIENCE = 60
"""Number of waits for the rest of a partially received message."""


class Phase(IntEnum):
    """The current call of a worker's envs, for error messages."""

    IDLE = 0
    CONSTRUCTOR = 1
    RESET = 2
    STEP = 3
    SNAPSHOT = 4
    PARAMETERS = 5


class Cell(IntEnum):
    """Status that a worker keeps in shared memory, so that it survives a crash."""

    CALLS = 0
    ROW = 1
    GROUP = 2
    PHASE = 3


STATUS_BYTES = 8 * len(Cell)


@dataclass(frozen=True)
class Failure:
    """An exception sent by a worker, with its traceback."""

    message: str
    names_env: bool
    traceback: str


def send_message(connection: socket.socket, kind: bytes, message: Any, dumps: Any = pickle.dumps) -> None:
    """Send one byte for the kind, the length, and the pickled message."""
    payload = dumps(message)
    connection.sendall(kind + _LENGTH.pack(len(payload)) + payload)


def read_message(connection: socket.socket) -> Any:
    """Receive a message whose kind has already been read."""
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    return pickle.loads(_read(connection, length))


def _read(connection: socket.socket, length: int) -> bytes:
    received, waits = bytearray(), 0
    while len(received) < length:
        try:
            piece = connection.recv(min(length - len(received), 1 << 20))
        except BlockingIOError:  # timed out; on a busy machine the rest may still arrive
            piece, waits = b"", waits + 1
            if waits < _PATIENCE:
                continue
        if not piece:
            raise EOFError("the other process closed the connection")
        received += piece
    return bytes(received)
