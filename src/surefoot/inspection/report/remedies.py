"""What `surefoot doctor` finds, with its remedies."""

from collections.abc import Sequence
from html import escape

from surefoot.errors import SurefootError
from surefoot.inspection.diagnosis import describe, diagnosis_of
from surefoot.inspection.findings import Finding
from surefoot.inspection.report.reported_run import ReportedRun
from surefoot.inspection.report.run_groups import Group
from surefoot.storage.trust import WANTS_TO_IMPORT, trusting

MOST_RUNS = 12
"""Runs of a page that are diagnosed."""


def remedies(groups: Sequence[Group]) -> str:
    """The findings as HTML, the most severe first; one that several runs have in common is listed once."""
    runs = [run for group in groups for run in group.runs]
    found: dict[tuple[str, tuple[str, ...]], tuple[Finding, list[str]]] = {}
    notes = []
    for run in runs[:MOST_RUNS]:
        try:
            for finding in _findings(run):
                found.setdefault((finding.name, finding.remedies), (finding, []))[1].append(run.name)
        except SurefootError as error:
            is_foreign = WANTS_TO_IMPORT in str(error)
            reason = "a report does not import code that its config names" if is_foreign else error
            notes.append(f"{run.name} was not diagnosed here ({reason}); run surefoot doctor {run.path}")
    if len(runs) > MOST_RUNS:
        notes.append(f"The first {MOST_RUNS} runs are diagnosed; run surefoot doctor for the others.")
    order = ("high", "medium", "low")
    ranked = sorted(found.values(), key=lambda one: order.index(one[0].severity))
    lines = [_shown(finding, names if len(runs) > 1 else []) for finding, names in ranked]
    return "".join([*lines, *(f"<p class='note'>{escape(note)}</p>" for note in notes)])


def _findings(run: ReportedRun) -> Sequence[Finding]:
    """A page is only read: code that the config names is not imported."""
    with trusting(False):
        return diagnosis_of(run).findings


def _shown(finding: Finding, names: Sequence[str]) -> str:
    of = f" · {escape(', '.join(names))}" if names else ""
    evidence = "; ".join([*map(describe, finding.evidence), finding.when])
    tips = "".join(f"<li>{escape(tip)}</li>" for tip in finding.remedies)
    return (
        f'<div class="finding {finding.severity}"><p><b>{escape(finding.title)}</b> ({finding.severity}){of}</p>'
        f"<p>{escape(finding.meaning)}</p><p class='note'>{escape(evidence)}</p><ul>{tips}</ul></div>"
    )
