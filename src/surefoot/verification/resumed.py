"""The new process of `verify`: loads a checkpoint, runs one iteration and writes its results."""

import json
import sys
from pathlib import Path

from surefoot.machine.torch_defaults import torch_threads
from surefoot.settings.layers import build_config
from surefoot.verification.resuming import read_config, write_results
from surefoot.verification.subject import Subject


def main(folder: Path, engine: str) -> None:
    """Resume the run in a folder."""
    with torch_threads(1):
        write_results(folder, Subject(build_config(json.loads(read_config(folder)))), engine)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
