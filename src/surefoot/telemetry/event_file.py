"""TensorBoard's event files: records with checksums, each a protobuf message `Event`.

The fields are those of TensorBoard's `event.proto` and `summary.proto`. With its own classes, the metrics of an
iteration take ten times as long.
"""

import struct
from array import array
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from surefoot.native import core
from surefoot.native.kernels import faster_by

_NUMBER, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
"""How a field is encoded: the last three bits of its tag."""


class EventFile:
    """A new file; every event is written at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def add(self, wall_time: float, step: int, content: bytes) -> None:
        """Add an event with a field of its content: a version, a summary or a log of the session."""
        event = bytes([1 << 3 | _DOUBLE]) + struct.pack("<d", wall_time) + _field(2, step) + content
        size = struct.pack("<Q", len(event))
        self._file.write(size + _checksum(size) + event + _checksum(event))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def file_version() -> bytes:
    """The content of the first event."""
    return _field(3, b"brain.Event:2")


def session_start() -> bytes:
    """Events from this step on replace those of earlier files."""
    return _field(7, _field(1, 1))


def scalars(metrics: Mapping[str, float]) -> bytes:
    """A summary of numbers by name, which are stored as float32."""
    numbers = array("f", metrics.values()).tobytes()
    parts = [_scalar_until_number(name) + numbers[4 * place : 4 * place + 4] for place, name in enumerate(metrics)]
    return _field(5, b"".join(parts))


def image(name: str, encoded: bytes, width: int, height: int) -> bytes:
    """A summary of an encoded color image."""
    shown = _field(1, height) + _field(2, width) + _field(3, 3) + _field(4, encoded)
    return _field(5, _field(1, _field(1, name.encode()) + _field(4, shown)))


@cache
def _scalar_until_number(name: str) -> bytes:
    tag = _field(1, name.encode()) + bytes([2 << 3 | _FLOAT])
    return bytes([1 << 3 | _BYTES]) + _varint(len(tag) + 4) + tag


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a message: a whole number, or bytes, which may be a message."""
    if isinstance(value, int):
        return bytes([number << 3 | _NUMBER]) + _varint(value)
    return bytes([number << 3 | _BYTES]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    """Seven bits per byte, the lowest first; all bytes but the last have the highest bit."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _checksum(data: bytes) -> bytes:
    """The masked CRC-32C."""
    crc = _crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@faster_by(lambda data: core().crc32c(data), lambda data: True)
def _crc32c(data: bytes) -> int:
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc32c

    checksum: int = crc32c(data)
    return checksum
