"""A run that continues from a checkpoint must equal one that was never interrupted (S15)."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from surefoot.compose import build_trainer
from surefoot.core.state import load_states, states
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.trainer import Trainer
from surefoot.verification.legs import tensors_of
from surefoot.verification.report import Findings
from surefoot.verification.subject import Subject

NAME, ROLLOUT = "resume", "the next rollout"
_WEAKER = "these envs cannot save their state: a resumed run keeps its weights and statistics, but starts new episodes"


def compare_resume(findings: Findings, subject: Subject, engine: str) -> None:
    """Compare the iteration after a checkpoint with the same iteration of a new trainer that loads the file."""
    if subject.is_fixed:
        findings.skip(NAME, ROLLOUT, "an existing env cannot be made a second time; pass a function that makes it")
        return
    with tempfile.TemporaryDirectory(prefix="surefoot-verify-") as folder:
        file = Path(folder) / "checkpoint.safetensors"
        with subject.opened(engine) as env:
            trainer = build_trainer(subject.config, env, subject.new_policy(env))
            trainer.iterate()
            write_checkpoint(file, states(trainer.parts()))
            can_save = trainer.collector.rows.can_save_envs()
            tensors, weights = _iterated(trainer)
        with subject.opened(engine) as env:
            trainer = build_trainer(subject.config, env, subject.new_policy(env))
            load_states(trainer.parts(), read_checkpoint(file))
            is_exact = trainer.collector.rows.is_exact
            resumed, resumed_weights = _iterated(trainer)
    if not can_save:
        findings.skip(NAME, ROLLOUT, _WEAKER)
        return
    if not is_exact:
        findings.broken(NAME, ROLLOUT, "the envs saved their state but could not load it")
        return
    for name in tensors:
        findings.bits(NAME, ROLLOUT, _flat(resumed[name]), _flat(tensors[name]))
    for name in weights:
        findings.bits(NAME, "weights and statistics", _flat(resumed_weights[name]), _flat(weights[name]))


def _iterated(trainer: Trainer) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    trainer.iterate()
    weights = {name: value.clone() for name, value in trainer.policy.state_dict().items()}
    return tensors_of(trainer.collector.rows.buffer), weights


def _flat(tensor: Tensor) -> Tensor:
    return torch.flatten(tensor)
