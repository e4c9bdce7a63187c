"""What a population must find on the disk to continue: it never starts again silently."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from surefoot.errors import CheckpointError, ConfigError, PopulationError
from surefoot.population.files import MemberFiles, PopulationFiles, copy_atomically
from surefoot.population.log import Entry
from surefoot.population.member import hash_of, round_begun
from surefoot.population.settings import Plan
from surefoot.storage.saved import Saved, reading
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory

_OTHERWISE = "or start a new population with another --run-dir; the members are unchanged"
_log = logging.getLogger("surefoot")


def check_values(rounds: Sequence[Sequence[Entry]], plan: Plan, log: Path) -> None:
    """Refuse lines without a value of each tunable, or with others, and a last round with impossible next values."""
    wanted = set(plan.names)
    for entry in (entry for entries in rounds for entry in entries):
        if set(entry.values) != wanted or set(entry.next_values) != wanted:
            raise PopulationError(
                f"{log}: round {entry.round}, member {entry.member}: its values are not those of"
                f" {', '.join(sorted(wanted))}; remove the lines of this round and all after them, and resume"
            )
    for entry in rounds[-1] if rounds else ():
        try:
            plan.member_config(entry.member, entry.next_values)
        except ConfigError as error:
            line = (entry.round - 1) * len(rounds[-1]) + entry.member + 1
            raise PopulationError(
                f"{log}: line {line}: next_values: {'; '.join(error.problems)}; remove the lines of this round and"
                " resume"
            ) from error


def check_continuity(rounds: Sequence[Sequence[Entry]], members: Sequence[MemberFiles], files: PopulationFiles) -> None:
    """What the log lacks must follow from the outcomes of the members, and no earlier round may be lost."""
    for member in members:
        if os.path.lexists(member.rounds) and not member.rounds.is_dir():
            raise PopulationError(f"{member.rounds} is not a directory; move it away and restore it, {_OTHERWISE}")
    reached = [max(member.last_round, round_begun(member.path)) for member in members]
    decided = max(*(number - 1 for number in reached), int(files.best.exists()))  # and to be decided again
    for number in range(len(rounds) + 1, decided + 1):
        missing = [member.outcome(number) for member in members if not member.outcome(number).is_file()]
        if missing:
            raise PopulationError(
                f"{files.log} lacks round {number} of {max(*reached, decided)}, and {missing[0]}, from which it could"
                f" be decided again, is missing; restore one of them, {_OTHERWISE}"
            )
    for number, member in zip(reached, members, strict=True):
        if not rounds and not number and RunDirectory(member.path).has_begun:
            raise PopulationError(
                f"{member.path} has begun round 1, but has no checkpoint that can be read; restore one, {_OTHERWISE}"
            )


def check_states(number: int, last: Sequence[Entry], members: Sequence[MemberFiles]) -> None:
    """Refuse a round of which a state is missing or damaged that a member is evaluated from or continues from."""
    for place, member in enumerate(members):
        if member.outcome(number).is_file():
            continue
        if member.checkpoint(number).is_file():
            _read(member.checkpoint(number), "remove it and resume: the round of this member is trained again")
        elif last and round_begun(member.path) < number:
            needed = {last[place].parent} | ({place} if not last[place].has_failed else set())
            for one in sorted(needed):
                state = members[one].checkpoint(number - 1)
                if not state.is_file():
                    raise PopulationError(
                        f"{state}, from which member {place:02d} continues, is missing; restore it, {_OTHERWISE}"
                    )
                if _read(state, f"restore it, {_OTHERWISE}") != last[one].hash:
                    raise PopulationError(
                        f"{state} is not the state that member {one:02d} had at the end of round {number - 1}; restore"
                        f" it, {_OTHERWISE}"
                    )


def _read(state: Path, remedy: str) -> str:
    """The hash of the policy in a state, or an error that says what can be done."""
    try:
        with reading(state):
            policy = Saved(read_checkpoint(state))["policy"].entries()
            return hash_of({name: weight.array() for name, weight in policy.items()})
    except CheckpointError as error:
        raise PopulationError(f"{error}; {remedy}") from error


def restore_best(rounds: Sequence[Sequence[Entry]], members: Sequence[MemberFiles], best: Path) -> None:
    """Somebody deleted the best policy: it is restored if the state of its member is still there."""
    scored = [entry for entries in rounds for entry in entries if entry.score is not None]
    if best.exists() or not scored:
        return
    winner = max(scored, key=lambda entry: (entry.score, entry.round, -entry.member))
    state = members[winner.member].checkpoint(winner.round)
    if state.is_file() and _read(state, f"restore {best}") == winner.hash:
        copy_atomically(state, best)
    else:
        _log.warning(
            "%s is missing, and cannot be restored: it was the policy of member %02d after round %d, which has trained"
            " since; a better one will replace it",
            best,
            winner.member,
            winner.round,
        )
