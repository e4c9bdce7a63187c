"""The update after a checkpoint in a new process: the same bits, or a difference that verify reports."""

import torch

from surefoot.settings.layers import build_config
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.verification.report import Component, Findings
from surefoot.verification.resuming import compare_elsewhere, interrupted, new_process
from surefoot.verification.subject import Subject

SUBJECT = Subject(build_config({"env.id": "CartPole-v1", "policy.hidden": [8], "normalize.obs": True}))


def test_resume_in_a_new_process() -> None:
    """With a sound checkpoint, with one that lost Adam's moments, and with none that can be read."""
    subject = SUBJECT.sized()
    with interrupted(subject, "native") as sound, interrupted(subject, "native") as lossy:
        file = lossy.folder / "checkpoint.safetensors"
        state = read_checkpoint(file)
        for moment in state["gradient"]["adam"]["exp_avg"].values():
            moment.zero_()
        write_checkpoint(file, state)
        with interrupted(subject, "native") as broken:
            (broken.folder / "checkpoint.safetensors").write_bytes(b"nothing")
            with new_process(sound) as first, new_process(lossy) as second, new_process(broken) as third:
                rows = [_compared(*pair) for pair in ((sound, first), (lossy, second), (broken, third))]
    assert [row.verdict for row in rows] == ["ok", "DIFFERS", "DIFFERS"]
    assert rows[1].difference is not None
    assert 0 < rows[1].difference < 1
    assert "checkpoint.safetensors is not a Surefoot checkpoint" in rows[2].note


def test_objects_cannot_be_made_in_another_process() -> None:
    with SUBJECT.sized().opened("native") as env:
        own = Subject(SUBJECT.config, policy=SUBJECT.new_policy(env)).sized()
    with interrupted(own, "native") as run, new_process(run) as process:
        row = _compared(run, process)
    assert row.verdict == "not compared"
    assert "passed as an object" in row.note


def test_the_optimizer_is_compared() -> None:
    with interrupted(SUBJECT.sized(), "native") as run:
        assert sum(name.startswith("gradient adam exp_avg") for name in run.results) > 0
        assert all(isinstance(value, torch.Tensor) for value in run.results.values())


def _compared(run: object, process: object) -> Component:
    findings = Findings()
    compare_elsewhere(findings, run, process)  # type: ignore[arg-type]
    (row,) = findings.components()
    return row
