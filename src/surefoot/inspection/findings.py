"""Result of a diagnosis: findings with evidence and remedies, and notes."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Severity = Literal["high", "medium", "low"]
_ORDER: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Evidence:
    """A metric value that supports a finding, and its step."""

    metric: str
    value: float
    step: int


@dataclass(frozen=True)
class Finding:
    """A problem of a run."""

    name: str
    severity: Severity
    title: str
    meaning: str
    evidence: tuple[Evidence, ...]
    when: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """All findings of a run, the most severe first."""

    run: Path
    env: str
    step: int
    total_steps: int
    process: str | None
    """The process that is still running it, if any."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    checked: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    @property
    def verdict(self) -> str:
        """A summary in one line."""
        if self.is_healthy:
            return "healthy: no problems found"
        titles = ", ".join(finding.title for finding in self.findings)
        return f"{len(self.findings)} finding{'s' * (len(self.findings) > 1)}: {titles}"

    def to_json(self) -> dict[str, Any]:
        """The diagnosis as JSON."""
        content = asdict(self)
        return content | {"run": str(self.run), "is_healthy": self.is_healthy, "verdict": self.verdict}


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings sorted by severity; the sort is stable."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))
