"""The commands that repeat the runs of a page."""

import shlex
from collections.abc import Sequence
from html import escape

from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.inspection.report.tables import swatch

MOST_LISTED = 20
"""Runs of a group whose commands are listed."""


def repeating_command(run: ReportedRun) -> str:
    """The command that repeats a run from its config, in a new directory."""
    config, new = shlex.quote(str(run.path / "config.yaml")), shlex.quote(f"{run.path}-again")
    return f"surefoot train --config {config} --run-dir {new}"


def reproduction(groups: Sequence[Group]) -> str:
    """The commands of each group as HTML."""
    several = len(groups) > 1
    return "".join(
        (f"<h3>{swatch(group)}{escape(group.label)}</h3>" if several else "") + _of(group) for group in groups
    )


def _of(group: Group) -> str:
    runs = group.runs[:MOST_LISTED]
    typed = list(dict.fromkeys(command for run in runs for command in run.log.commands))
    parts = [_block("The same settings and seed again:", [repeating_command(run) for run in runs])]
    if typed:
        parts.append(_block("Typed originally:", typed))
    if any(command.startswith("surefoot resume") for command in typed):
        parts.append(
            "<p class='note'>The run was resumed: config.yaml has the settings after the last resume, which it repeats"
            " from the first step on.</p>"
        )
    return "".join(parts)


def _block(title: str, commands: Sequence[str]) -> str:
    return f"<p class='note'>{title}</p><pre><code>{escape(chr(10).join(commands))}</code></pre>"
