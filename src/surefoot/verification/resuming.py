"""Going on from a checkpoint must be as if nothing had happened (S15)."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from surefoot.compose import build_trainer
from surefoot.core.state import load_states, states
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.trainer import Trainer
from surefoot.verification.legs import memory_of
from surefoot.verification.report import Findings
from surefoot.verification.subject import Subject

NAME, ROLLOUT = "resume", "the next rollout"
_WEAKER = "these envs cannot save their state: a resumed run has the same weights and statistics, but new episodes"


def compare_resume(findings: Findings, subject: Subject, engine: str) -> None:
    """An iteration, a checkpoint file, another iteration: here, and by a new trainer with new envs."""
    if subject.is_fixed:
        findings.skip(NAME, ROLLOUT, "an env that exists already cannot be made again")
        return
    with tempfile.TemporaryDirectory(prefix="surefoot-verify-") as folder:
        file = Path(folder) / "checkpoint.safetensors"
        with subject.opened(engine) as env:
            trainer = build_trainer(subject.config, env, subject.new_policy(env))
            trainer.iterate()
            write_checkpoint(file, states(trainer.parts()))
            can_save = trainer.collector.rows.can_save_envs()
            memory, weights = _iterated(trainer)
        with subject.opened(engine) as env:
            trainer = build_trainer(subject.config, env, subject.new_policy(env))
            load_states(trainer.parts(), read_checkpoint(file))
            is_exact = trainer.collector.rows.is_exact
            resumed, resumed_weights = _iterated(trainer)
    if not can_save:
        findings.skip(NAME, ROLLOUT, _WEAKER)
        return
    if not is_exact:
        findings.broken(NAME, ROLLOUT, "the envs saved their state and could not take it back")
        return
    for name in memory:
        findings.bits(NAME, ROLLOUT, _flat(resumed[name]), _flat(memory[name]))
    for name in weights:
        findings.bits(NAME, "weights and statistics", _flat(resumed_weights[name]), _flat(weights[name]))


def _iterated(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    trainer.iterate()
    weights = {name: value.clone() for name, value in trainer.policy.state_dict().items()}
    return memory_of(trainer.collector.rows.buffer), weights


def _flat(tensor: Tensor) -> Tensor:
    return torch.flatten(tensor)
