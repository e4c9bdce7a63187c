"""A run that continues from a checkpoint must equal one that was never interrupted (S15, docs/semantics.md)."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_trainer
from surefoot.envs.protocol import VecEnv
from surefoot.storage.state import copied, load_states, states
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.trainer import Trainer
from surefoot.verification.legs import tensors_of
from surefoot.verification.recording import labeled
from surefoot.verification.report import Findings
from surefoot.verification.subject import Subject

Process = subprocess.Popen[bytes]
NAME, ROLLOUT, ELSEWHERE = "resume", "the next rollout", "the next update in a new process"
PATIENCE_S = 120.0
"""Seconds to wait for the new process."""
_ROLLOUT = "rollout"
"""Prefix of the names of its tensors."""
_WEAKER = "these envs cannot save their state: a resumed run keeps its weights and statistics, but starts new episodes"
_CONFIG, _CHECKPOINT, _RESULT = "config.json", "checkpoint.safetensors", "result.safetensors"


@dataclass(frozen=True)
class Interrupted:
    """A checkpoint in a folder, and the results of the run that was not interrupted there."""

    subject: Subject
    engine: str
    folder: Path
    can_save: bool
    results: dict[str, Tensor]
    """The next rollout, weights, statistics and optimizer state, by name."""


@contextmanager
def interrupted(subject: Subject, engine: str) -> Iterator[Interrupted]:
    """One iteration, a checkpoint, and the next iteration."""
    with tempfile.TemporaryDirectory(prefix="surefoot-verify-") as name:
        folder = Path(name)
        with subject.opened(engine) as env:
            trainer = _trainer(subject, env)
            trainer.iterate()
            write_checkpoint(folder / _CHECKPOINT, states(trainer.stateful()))
            can_save = trainer.collector.rows.can_save_envs()
            results = _iterated(trainer)
        yield Interrupted(subject, engine, folder, can_save, results)


def compare_resume(findings: Findings, subject: Subject, engine: str) -> None:
    """Compare the iteration after a checkpoint with the same iteration of a new trainer that loads the file."""
    if subject.is_fixed:
        findings.uncovered(NAME, ROLLOUT, "an existing env cannot be created again; pass a function that creates it")
        return
    with interrupted(subject, engine) as run:
        compare_resumed(findings, run)


def compare_resumed(findings: Findings, run: Interrupted) -> None:
    """Compare with a new trainer in this process."""
    is_exact, results = resumed(run.subject, run.engine, run.folder / _CHECKPOINT)
    if not run.can_save:
        findings.skip(NAME, ROLLOUT, _WEAKER)
        return
    if not is_exact:
        findings.broken(NAME, ROLLOUT, "the envs saved their state but could not load it")
        return
    for name, expected in run.results.items():
        what = ROLLOUT if name.startswith(_ROLLOUT) else "weights and statistics"
        findings.bits(NAME, what, torch.flatten(results[name]), torch.flatten(expected))


def resumed(subject: Subject, engine: str, file: Path) -> tuple[bool, dict[str, Tensor]]:
    """Whether the envs could load their state, and the results of the iteration after a checkpoint."""
    with subject.opened(engine) as env:
        trainer = _trainer(subject, env)
        load_states(trainer.stateful(), read_checkpoint(file))
        return trainer.collector.rows.is_exact, _iterated(trainer)


@contextmanager
def new_process(run: Interrupted) -> Iterator[Process | str]:
    """A process that resumes from the checkpoint, or the reason why another process cannot."""
    subject = run.subject
    if subject.source is not None or subject.policy is not None or subject.encoder is not None:
        yield "another process cannot create an env, policy or encoder that was passed as an object"
        return
    (run.folder / _CONFIG).write_text(subject.config.model_dump_json())
    # The modules that this process finds must be found there too, such as those of custom parts.
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "surefoot.verification.resumed", str(run.folder), run.engine]
    with subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def compare_elsewhere(findings: Findings, run: Interrupted, process: Process | str) -> None:
    """Wait for the process, then compare its results."""
    if isinstance(process, str):
        findings.uncovered(NAME, ELSEWHERE, process)
        return
    try:
        _, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        findings.broken(NAME, ELSEWHERE, f"the process did not end within {PATIENCE_S:.0f} seconds")
        return
    if process.returncode != 0:
        told = errors.decode(errors="replace").strip() or f"exit code {process.returncode}"
        findings.broken(NAME, ELSEWHERE, told.splitlines()[-1])
        return
    results = read_checkpoint(run.folder / _RESULT)
    for name, expected in _without_rollout(run.results).items():
        findings.bits(NAME, ELSEWHERE, torch.flatten(results[name]), torch.flatten(expected))


def write_results(folder: Path, subject: Subject, engine: str) -> None:
    """What the new process does."""
    _, results = resumed(subject, engine, folder / _CHECKPOINT)
    write_checkpoint(folder / _RESULT, _without_rollout(results))


def read_config(folder: Path) -> str:
    """The config that the new process uses, as JSON."""
    return (folder / _CONFIG).read_text()


def _trainer(subject: Subject, env: VecEnv) -> Trainer:
    """A trainer whose rollouts have what terms read, too."""
    trainer = build_trainer(subject.config, env, subject.new_policy(env))
    collector, objective = trainer.collector, trainer.learner.objective
    collect = collector.collect
    collector.collect = lambda policy: labeled(collect(policy), objective, policy)  # type: ignore[method-assign]
    return trainer


def _iterated(trainer: Trainer) -> dict[str, Tensor]:
    """The rollout, the policy and the optimizer after an iteration."""
    trainer.iterate()
    stateful = trainer.stateful()
    saved = copied({name: stateful[name].state() for name in ("policy", "gradient")})
    found = {f"{_ROLLOUT} {name}": value for name, value in tensors_of(trainer.collector.rows.buffer).items()}
    return found | dict(_tensors("", saved))


def _without_rollout(results: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in results.items() if not name.startswith(_ROLLOUT)}


def _tensors(name: str, state: Any) -> Iterator[tuple[str, Tensor]]:
    """All tensors of a nested state, by the path of their names."""
    if isinstance(state, Tensor):
        yield name, state
    elif isinstance(state, Mapping):
        for key, inner in state.items():
            yield from _tensors(f"{name} {key}".strip(), inner)
