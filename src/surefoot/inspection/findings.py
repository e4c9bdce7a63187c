"""What a look at a run comes to: findings with evidence and remedies, and notes."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Severity = Literal["high", "medium", "low"]
_ORDER: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Evidence:
    """One number that shows it, and where."""

    metric: str
    value: float
    step: int


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    name: str
    severity: Severity
    title: str
    meaning: str
    evidence: tuple[Evidence, ...]
    when: str
    remedies: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """All that was found in one run, the worst first."""

    run: Path
    env: str
    step: int
    total_steps: int
    process: str | None
    """The process that is still at it, if there is one."""
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    checked: tuple[str, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def verdict(self) -> str:
        """One line."""
        if self.is_healthy:
            return "healthy: nothing wrong was found"
        titles = ", ".join(finding.title for finding in self.findings)
        return f"{len(self.findings)} finding{'s' * (len(self.findings) > 1)}: {titles}"

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        content = asdict(self)
        return content | {"run": str(self.run), "is_healthy": self.is_healthy, "verdict": self.verdict}


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Ordered by severity; equal ones stay in the order they were found in."""
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.severity)))
