"""What the `processes` engine and its workers say to each other over a socket.

A step is one byte each way: the group to step, and `DONE`. Everything else is rare and goes as a pickled message,
always between processes of one run. Either side sees the end of the other as the end of the stream.
"""

import pickle
import signal
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

MAX_GROUPS = 200
SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What a terminal or a scheduler sends to all processes of a run; workers leave them to their parent."""
CALL = bytes([255])
DONE = b"."
RESULT = b"="
FAILURE = b"!"

_LENGTH = struct.Struct("!Q")
_PATIENCE = 60
"""Waits for the rest of a message that has begun to arrive."""


class Phase(IntEnum):
    """What a worker's envs are doing, for messages."""

    IDLE = 0
    CONSTRUCTOR = 1
    RESET = 2
    STEP = 3
    SNAPSHOT = 4
    PARAMETERS = 5


class Cell(IntEnum):
    """Numbers that a worker keeps in shared memory, so that they survive its death."""

    CALLS = 0
    ROW = 1
    GROUP = 2
    PHASE = 3


STATUS_BYTES = 8 * len(Cell)


@dataclass(frozen=True)
class Failure:
    """An exception on its way from a worker: what happened, and where."""

    message: str
    names_env: bool
    traceback: str


def send_message(connection: socket.socket, kind: bytes, message: Any, dumps: Any = pickle.dumps) -> None:
    """One byte of kind, the length, the pickled message."""
    payload = dumps(message)
    connection.sendall(kind + _LENGTH.pack(len(payload)) + payload)


def read_message(connection: socket.socket) -> Any:
    """The message whose kind has been read already."""
    (length,) = _LENGTH.unpack(_read(connection, _LENGTH.size))
    return pickle.loads(_read(connection, length))


def _read(connection: socket.socket, length: int) -> bytes:
    received, waits = bytearray(), 0
    while len(received) < length:
        try:
            piece = connection.recv(min(length - len(received), 1 << 20))
        except BlockingIOError:  # a wait ran out; on a busy machine the rest may still come
            piece, waits = b"", waits + 1
            if waits < _PATIENCE:
                continue
        if not piece:
            raise EOFError("the other side is gone")
        received += piece
    return bytes(received)
