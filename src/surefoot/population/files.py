"""The files of a population."""

import os
import shutil
from pathlib import Path

import yaml

from surefoot.settings.layers import Raw
from surefoot.training.checkpoint import write_atomically


class PopulationFiles:
    """The directory of a population."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "population.yaml"
        self.log = path / "population.jsonl"
        self.best = path / "best.safetensors"
        self.members = path / "members"

    def member(self, member: int) -> "MemberFiles":
        """The files of a member."""
        return MemberFiles(self.path, member)

    def write_config(self, raw: Raw) -> None:
        """Write everything that defines the population."""
        write_atomically(self.config, yaml.safe_dump(raw, sort_keys=False).encode())


class MemberFiles:
    """The directory of a member: a run directory, with the states at the end of the last rounds."""

    def __init__(self, population: Path, member: int) -> None:
        self.path = population / "members" / f"{member:02d}"
        self.rounds = self.path / "rounds"

    def checkpoint(self, number: int) -> Path:
        """The state at the end of a round."""
        return self.rounds / f"{number:04d}.safetensors"

    def outcome(self, number: int) -> Path:
        """What the job of a round returned, written by the coordinator and kept: the log can be made from it again."""
        return self.rounds / f"{number:04d}.json"

    def keep(self, checkpoint: Path, number: int) -> None:
        """Keep a checkpoint as the state at the end of a round."""
        self.rounds.mkdir(exist_ok=True)
        copy_atomically(checkpoint, self.checkpoint(number))

    def forget(self, number: int) -> None:
        """Delete the states of rounds up to this one."""
        for path in self.rounds.glob("*.safetensors"):
            if path.stem.isdecimal() and int(path.stem) <= number:
                path.unlink(missing_ok=True)

    @property
    def last_round(self) -> int:
        """The last round of which there is a state or an outcome; 0 if there is none."""
        found = [path.stem for path in self.rounds.glob("*") if path.suffix in (".safetensors", ".json")]
        return max((int(stem) for stem in found if stem.isdecimal()), default=0)


def copy_atomically(source: Path, target: Path) -> None:
    """A copy, complete or not at all; files are only ever replaced, so it can be a link."""
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:  # a file system without links
        shutil.copyfile(source, temporary)
    temporary.replace(target)
