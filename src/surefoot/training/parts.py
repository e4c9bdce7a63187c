"""The parts of a trainer that have state, by the names they have in checkpoints (S15)."""

from typing import TYPE_CHECKING, Any

from surefoot.core.records import Progress
from surefoot.core.state import ModuleState, Stateful

if TYPE_CHECKING:
    from surefoot.training.trainer import Trainer

LEARNED = ("policy", "gradient", "objective", "schedules")
"""Parts that an update changes, and that a rollback restores."""


class _ProgressState:
    def __init__(self, trainer: "Trainer") -> None:
        self._trainer = trainer

    def state(self) -> dict[str, Any]:
        return {"step": self._trainer.progress.step, "iteration": self._trainer.progress.iteration}

    def load_state(self, state: dict[str, Any]) -> None:
        """The total stays that of the config."""
        self._trainer.progress = Progress(total=self._trainer.progress.total, **state)


def parts_of(trainer: "Trainer") -> dict[str, Stateful]:
    """Saving, restoring, checking and rolling back iterate over these."""
    learner = trainer.learner
    return {
        "policy": ModuleState(trainer.policy, "policy"),
        "gradient": learner.gradient,
        "objective": learner.objective,
        "learner": learner,
        "scorer": trainer.scorer,
        "schedules": trainer.schedules,
        "progress": _ProgressState(trainer),
        "collector": trainer.collector.rows,
    }
