"""What a population must find on the disk to continue: it never starts again silently."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from surefoot.errors import PopulationError
from surefoot.population.files import MemberFiles
from surefoot.population.log import Entry
from surefoot.population.member import round_begun

_OTHERWISE = "or start a new population with another --run-dir; the members are unchanged"


def check_values(rounds: Sequence[Sequence[Entry]], names: Iterable[str], log: Path) -> None:
    """Refuse lines without a value of each tunable, or with others."""
    wanted = set(names)
    for entry in (entry for entries in rounds for entry in entries):
        if set(entry.values) != wanted or set(entry.next_values) != wanted:
            raise PopulationError(
                f"{log}: round {entry.round}, member {entry.member}: its values are not those of"
                f" {', '.join(sorted(wanted))}; remove the lines of this round and all after them, and resume"
            )


def check_continuity(rounds: Sequence[Sequence[Entry]], members: Sequence[MemberFiles], log: Path) -> None:
    """What the log lacks must follow from the outcomes of the members, and no state may be missing."""
    reached = [max(files.last_round, round_begun(files.path)) for files in members]
    for number in range(len(rounds) + 1, max(reached)):  # decided before, and to be decided again
        missing = [files.outcome(number) for files in members if not files.outcome(number).is_file()]
        if missing:
            raise PopulationError(
                f"{log} lacks round {number} of {max(reached)}, and {missing[0]}, from which it could be decided again,"
                f" is missing; restore one of them, {_OTHERWISE}"
            )
    if not rounds or max(reached) > len(rounds) + 1:
        return
    for member, entry in enumerate(rounds[-1]):
        state = members[entry.parent].checkpoint(len(rounds))
        if reached[member] <= len(rounds) and not state.is_file():
            raise PopulationError(
                f"{state}, from which member {member:02d} continues, is missing; restore it, {_OTHERWISE}"
            )
