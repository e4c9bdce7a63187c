"""How differences are measured, collected and shown."""

import io
import math

import pytest
import torch
from rich.console import Console

from surefoot.verification.report import Findings, Report, count_unequal, digest, largest_difference, magnitude
from surefoot.verification.table import show, summary


def report_of(findings: Findings) -> Report:
    return Report("Task-v0", "native", "", 0, findings.components())


def test_bits_tell_what_equality_does_not() -> None:
    zeros, signed = torch.zeros(3), torch.tensor([0.0, -0.0, 0.0])
    assert torch.equal(zeros, signed)
    assert count_unequal(zeros, signed) == 1
    nan = torch.tensor([math.nan])
    assert count_unequal(nan, nan.clone()) == 0
    assert count_unequal(torch.zeros(2), torch.zeros(2, dtype=torch.float64)) == 2
    assert count_unequal(torch.zeros(2), torch.zeros(3)) == 3
    assert count_unequal(torch.zeros(0), torch.zeros(0)) == 0
    assert count_unequal(torch.tensor([True, False]), torch.tensor([True, True])) == 1


def test_largest_difference() -> None:
    assert largest_difference(torch.tensor([1, 5]), torch.tensor([1, 2])) == 3
    assert largest_difference(torch.tensor([math.inf]), torch.tensor([math.inf])) == 0
    assert largest_difference(torch.tensor([math.nan]), torch.tensor([1.0])) == math.inf
    assert largest_difference(torch.zeros(1), torch.zeros(2)) == math.inf
    assert largest_difference(torch.zeros(0), torch.zeros(0)) == 0


def test_magnitude_is_at_least_1() -> None:
    assert magnitude(torch.tensor([0.1, -0.2])) == 1
    assert magnitude(torch.tensor([0.1, -20.0])) == 20
    assert magnitude(torch.zeros(0)) == 1


def test_digest_depends_on_names_types_shapes_and_bits() -> None:
    tensor = torch.arange(4.0)
    digests = [
        digest({"a": tensor}),
        digest({"b": tensor}),
        digest({"a": tensor.double()}),
        digest({"a": tensor.view(2, 2)}),
        digest({"a": tensor + 1e-6}),
    ]
    assert len(set(digests)) == len(digests)
    assert digest({"a": tensor.clone(), "b": tensor}) == digest({"b": tensor, "a": tensor})


def test_repeated_comparisons_are_one_row_with_the_worst() -> None:
    findings = Findings()
    for difference in (0.0, 0.5, 0.25):
        findings.within("losses", "all", torch.tensor([difference]), torch.zeros(1), 1.0)
    findings.skip("resume", "all", "no reason")
    findings.bits("losses", "others", torch.ones(3), torch.tensor([1.0, 2.0, 4.0]))
    rows = findings.components()
    assert [(row.name, row.compared, row.difference, row.verdict) for row in rows] == [
        ("losses", "all", 0.5, "ok"),
        ("losses", "others", 3.0, "DIFFERS"),
        ("resume", "all", None, "not applicable"),
    ]
    assert rows[1].note == "2 of 3 differ"


def test_some_exceptions_may_be_allowed() -> None:
    findings = Findings()
    for name, wrong in (("few", 3), ("many", 4)):
        findings.count("gradients", name, wrong, 2_000, "were left out", allowed=3)
    assert [(row.verdict, row.tolerance, row.note) for row in findings.components()] == [
        ("ok", 3.0, "3 of 2,000 were left out"),
        ("DIFFERS", 3.0, "4 of 2,000 were left out"),
    ]


def test_what_is_not_a_number_differs() -> None:
    findings = Findings()
    findings.within("values", "all", torch.tensor([math.nan]), torch.zeros(1), 1.0)
    report = report_of(findings)
    assert report.differing == ("values",)
    assert report.to_json()["components"][0]["difference"] == "inf"


def test_nothing_differs_where_nothing_applies() -> None:
    findings = Findings()
    findings.skip("resume", "all", "why")
    assert report_of(findings).ok


@pytest.mark.parametrize("width", [80, 120])
def test_table_fits_its_width(width: int) -> None:
    findings = Findings()
    findings.bits("thread independence", "SHA-256 of a rollout with [1, 2] threads", torch.ones(2), torch.zeros(2))
    findings.within("normalizer statistics", "moments of observations", torch.ones(1), torch.ones(1), 1e-5)
    findings.skip("resume", "rollout after a checkpoint", "these envs cannot save their state " * 3)
    report = report_of(findings)
    output = io.StringIO()
    show(report, Console(file=output, width=width))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = " ".join(output.getvalue().split())
    for expected in ("thread independence", "bits DIFFERS", "2 of 2 differ", "0 1.0e-05 ok", "n/a"):
        assert expected in shown
    assert summary(report) == "Task-v0: DIFFERS in thread independence"
    assert lines[-1] == summary(report)


def test_summary_says_what_was_compared_and_what_was_not() -> None:
    findings = Findings()
    findings.fine("protocol", "resets and steps")
    findings.fine("minibatches", "sizes, against numpy")
    findings.fine("knobs", "of every update, against numpy")
    findings.fine("normalizer statistics", "moments of observations")
    findings.fine("GAE", "advantages")
    findings.uncovered("GAE", "against numpy", "ppo.estimator is 'risk'")
    findings.uncovered("learner", "native against readable", "PyTorch (train.learner is torch)")
    report = Report("Task-v0", "stepwise", "no native implementation", 0, findings.components())
    assert report.ok
    assert summary(report).splitlines() == [
        "Task-v0: ok in 5 comparisons: the env keeps the protocol; minibatches and schedules equal plain numpy",
        "not compared: GAE, against numpy (ppo.estimator is 'risk')",
        "not compared: learner, native against readable (PyTorch (train.learner is torch))",
    ]
    assert report.to_json()["not_compared"] == [
        "GAE, against numpy (ppo.estimator is 'risk')",
        "learner, native against readable (PyTorch (train.learner is torch))",
    ]
