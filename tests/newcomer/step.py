"""A step of the walk: a command as a user types it, and what it must print and write."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """One command; it fails with another exit code, without one of the texts, or without one of the files."""

    name: str
    command: str
    prints: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    code: int = 0
    interrupt_at: str = ""
    """Ctrl-C once the command has printed this."""
    typed_from: str = ""
    """Name of an earlier step: the command is a pattern, and what its output shows of it is typed."""
    in_clone: bool = False
    """Typed in the clone instead of the user's folder."""
    readme: str = ""
    """README's line, of which the command is a shorter form."""
    only_new_venv: bool = field(default=False, kw_only=True)
    """Left out when an existing environment is used."""


def readme(line: str, also: str = "", *, instead: tuple[tuple[str, str], ...] = (), **expected: object) -> Step:
    """A command of README, with shorter values for some words and further options at its end."""
    command = line
    for old, new in instead:
        assert old in command.split(), f"{old} is not a word of: {line}"
        command = " ".join(new if word == old else word for word in command.split())
    return Step(f"README: {line}", f"{command} {also}".strip(), readme=line, **expected)  # type: ignore[arg-type]
