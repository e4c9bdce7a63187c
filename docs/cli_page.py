"""Writes docs/cli.md from the options of the commands: `python docs/cli_page.py`."""

import argparse
import io
import re
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import tyro

from surefoot.cli.bench import BENCHMARKS
from surefoot.cli.main import COMMANDS, main

PAGE = Path(__file__).parent / "cli.md"
NESTED = {"bench": tuple(BENCHMARKS), "native": ("new", "build"), "population": ("resume", "replay")}
"""Commands of commands."""
_DEFAULT = re.compile(r" \((?:required|default: (?:None|False|''|))\)$")
"""What the help says of arguments that have no default."""


class _Declared(BaseException):
    """Ends a command where it parses its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def page() -> str:
    """The whole page."""
    lines = [
        "# Command line",
        "",
        "Written by `python docs/cli_page.py` from the help of the commands, which `surefoot COMMAND --help` prints.",
        "",
        "| command | |",
        "|---|---|",
        *(f"| [`surefoot {name}`](#surefoot-{name}) | {text} |" for name, text in COMMANDS.items()),
        "",
        "A command that fails prints one message and exits with code 2; `--debug` also shows the traceback.",
    ]
    for name in COMMANDS:
        for command in (name, *(f"{name} {nested}" for nested in NESTED.get(name, ()))):
            lines += ["", f"{'###' if ' ' in command else '##'} surefoot {command}", "", *_described(command)]
    return "\n".join([*lines, ""])


def _described(command: str) -> list[str]:
    """The help of a command: its description, and its arguments as a table."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed), patch("tyro.cli", _declared):
            main([*command.split(), "--help"])
    except _Declared as declared:
        parser = _parser(declared.function)
        rows = [row for group in parser._action_groups for action in group._group_actions if (row := _row(action))]
        table = ["", "| argument | meaning |", "|---|---|", *rows] if rows else []
        takes_settings = ["", "It also takes [settings](settings.md) as `--section.key value`."]
        return [*_paragraphs(parser.description or ""), *table, *(takes_settings if printed.getvalue() else [])]
    return ["```text", printed.getvalue().strip(), "```"]  # commands that only choose another one


def _declared(function: Callable[..., Any], **options: Any) -> NoReturn:
    raise _Declared(function)


def _parser(function: Callable[..., Any]) -> argparse.ArgumentParser:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # there is no other way to read what tyro has parsed
        return tyro.extras.get_parser(function)


def _row(action: argparse.Action) -> str:
    """A row of the table; empty for --help."""
    if action.dest == "help":
        return ""
    value = str(action.metavar or "").replace("{None}|", "").removeprefix("[").removesuffix("]").replace("|", " or ")
    name = action.option_strings[0] if action.option_strings else action.dest.upper()
    is_needed = bool(action.option_strings) and "(required)" in str(action.help)
    option = f"{name} {value}" if value and action.option_strings else name
    meaning = _DEFAULT.sub("", str(action.help)).replace("\n", " ").replace("|", "\\|").replace("<", "&lt;")
    return f"| `{option}` | {meaning}{' (required)' * is_needed} |"


def _paragraphs(text: str) -> list[str]:
    return re.sub(r"\n{3,}", "\n\n", text.strip()).splitlines()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
