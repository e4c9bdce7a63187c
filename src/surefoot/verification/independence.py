"""A rollout must not depend on the number of threads or machines, nor a row on other rows (S13, docs/semantics.md)."""

from typing import Any

import torch
from torch import Tensor

from surefoot.compose import build_collector
from surefoot.verification.differences import digest
from surefoot.verification.legs import tensors_of
from surefoot.verification.report import Findings
from surefoot.verification.subject import Subject

THREADS = (1, 2, 4, 7)
MORE_ROWS = 64
NUM_STEPS = 24
"""Length of each rollout; within two of them, every row ends an episode at least once."""


def compare_threads(findings: Findings, subject: Subject) -> None:
    """Compare digests of rollouts with different numbers of threads."""
    digests = [digest(_collected(_short(subject, rollout__workers=threads))) for threads in THREADS]
    wrong = sum(other != digests[0] for other in digests[1:])
    what = f"{', '.join(map(str, THREADS[:-1]))} and {THREADS[-1]} threads"
    findings.count("thread independence", what, wrong, len(THREADS) - 1, "differ from that of 1 thread")


def compare_rows(findings: Findings, subject: Subject) -> None:
    """Compare the same rows in a small and in a large rollout."""
    few, many = _collected(_short(subject)), _collected(_short(subject, rollout__num_envs=MORE_ROWS))
    what = f"alone and among {MORE_ROWS} rows"
    for name, tensor in few.items():
        rows = many[name][: len(tensor)] if name == "last_value" else many[name][:, : tensor.shape[1]]
        findings.bits("row independence", what, _flat(tensor), _flat(rows))


def compare_machines(findings: Findings, subject: Subject) -> None:
    """Compare a rollout on the configured Ray cluster with one of this process."""
    short = _short(subject)
    engine = short.config.rollout.engine
    here, there = _collected(short), _collected(short, engine.model_dump(mode="json"))
    for name, tensor in here.items():
        findings.bits("machine independence", "on the cluster and in this process", _flat(tensor), _flat(there[name]))


def _short(subject: Subject, **changes: int) -> Subject:
    return subject.sized(rollout__num_steps=NUM_STEPS, **changes)


def _collected(subject: Subject, engine: Any = "native") -> dict[str, Tensor]:
    """The tensors of the second rollout, which begins in the middle of episodes."""
    with subject.opened(engine) as env:
        policy = subject.new_policy(env)
        collector = build_collector(subject.config, env, policy)
        for _ in range(2):
            collector.collect(policy)
        return tensors_of(collector.rows.buffer)


def _flat(tensor: Tensor) -> Tensor:
    return torch.flatten(tensor.contiguous())
