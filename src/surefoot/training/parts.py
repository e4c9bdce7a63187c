"""The parts of a trainer that have state, by the names they have in checkpoints (S15)."""

from typing import TYPE_CHECKING, Any

from surefoot.core.records import Progress
from surefoot.core.saved import Saved
from surefoot.core.state import ModuleState, Stateful

if TYPE_CHECKING:
    from surefoot.training.trainer import Trainer

LEARNED = ("policy", "gradient", "objective", "schedules")
"""Parts that an update changes and a rollback restores."""
KEPT = (*LEARNED, "scorer", "progress")
"""Parts that an iteration changes after its rollout; an error in the middle of it restores them."""


class _Counters:
    """Steps and iterations of a trainer, and updates of its learner; the total comes from the config."""

    def __init__(self, trainer: "Trainer") -> None:
        self._trainer = trainer

    def state(self) -> dict[str, Any]:
        trainer = self._trainer
        return {
            "step": trainer.progress.step,
            "iteration": trainer.progress.iteration,
            "update": trainer.learner.update,
        }

    def check_state(self, saved: Saved) -> None:
        for name in ("step", "iteration", "update"):
            saved[name].integer()

    def load_state(self, state: dict[str, Any]) -> None:
        trainer = self._trainer
        trainer.progress = Progress(state["step"], trainer.progress.total, state["iteration"])
        trainer.learner.update = state["update"]


def parts_of(trainer: "Trainer") -> dict[str, Stateful]:
    """The parts that are saved, restored, checked and rolled back."""
    learner = trainer.learner
    return {
        "policy": ModuleState(trainer.policy, "policy"),
        "gradient": learner.gradient,
        "objective": learner.objective,
        "scorer": trainer.scorer,
        "schedules": trainer.schedules,
        "progress": _Counters(trainer),
        "collector": trainer.collector.rows,
    }
