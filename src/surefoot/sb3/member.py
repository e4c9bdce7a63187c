"""Files of other programs, with bounded memory: named pipes and archives that expand enormously are refused."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefoot.errors import CheckpointError
from surefoot.machine.ram import free_ram, readable
from surefoot.output.failures import brief
from surefoot.output.quoted import quoted
from surefoot.storage.saved import reading

_MOST_EXPANSION = 100
"""Agents are saved without compression, and weights hardly compress."""
_COPIES = 4
"""The bytes of the file, its tensors before and after they are converted, and those of the agent."""


@contextmanager
def reading_foreign(path: Path, what: str) -> Iterator[None]:
    """Errors inside name the file; a damaged or hostile one fails in many ways, which all are a CheckpointError."""
    with reading(path):
        try:
            yield
        except CheckpointError:
            raise
        except FileNotFoundError as error:
            raise CheckpointError(f"{path} does not exist") from error
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
        except Exception as error:
            raise CheckpointError(f"{path} is not {what}: {brief(error)}") from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file inside an archive."""
    info, name = archive.getinfo(name), quoted(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise CheckpointError(f"{name} is compressed in an unusual way; save the agent again")
    if info.file_size > _MOST_EXPANSION * info.compress_size + 2**20:
        raise CheckpointError(f"{name} expands from {readable(info.compress_size)} to {readable(info.file_size)}")
    if _COPIES * info.file_size > free_ram():
        raise CheckpointError(f"{name} has {readable(info.file_size)}, more than the free memory allows")
    with archive.open(info) as file:
        data = file.read(
            info.file_size + 1
        )  # an unbounded read would also decompress what the archive does not declare
    if len(data) != info.file_size:
        raise CheckpointError(f"{name} has {len(data)} bytes, but the archive says {info.file_size}")
    return data
