"""A trainer's whole state, out and in: what makes a resumed run go on bit for bit (S15)."""

from typing import Any

from surefoot.core.records import Progress
from surefoot.training.checkpoint import check_shapes
from surefoot.training.trainer import Trainer


def trainer_state(trainer: Trainer) -> dict[str, Any]:
    """Weights, optimizer, statistics, schedules, counters and rows."""
    scaler = trainer.scorer.reward_scaler
    return {
        "policy": dict(trainer.policy.state_dict()),
        "optimizer": trainer.learner.gradient.state(),
        "update": trainer.learner.update,
        "schedules": trainer.schedules.state(),
        "reward_scaler": None if scaler is None else scaler.state(),
        "collector": trainer.collector.rows.state(),
        "progress": {"step": trainer.progress.step, "iteration": trainer.progress.iteration},
    }


def restore_trainer(trainer: Trainer, state: dict[str, Any]) -> bool:
    """Go on from a checkpoint; checks that all of it fits before touching anything.

    False if the envs could not be put back where they were and start new episodes instead.
    """
    check_shapes(trainer.policy, state["policy"], "policy")
    trainer.learner.gradient.check_state(state["optimizer"])
    trainer.policy.load_state_dict(state["policy"])
    trainer.learner.gradient.load_state(state["optimizer"])
    trainer.learner.update = state["update"]
    trainer.schedules.load_state(state["schedules"])
    if trainer.scorer.reward_scaler is not None and state["reward_scaler"] is not None:
        trainer.scorer.reward_scaler.load_state(state["reward_scaler"])
    trainer.progress = Progress(total=trainer.progress.total, **state["progress"])
    return trainer.collector.rows.load_state(state["collector"], trainer.policy)
