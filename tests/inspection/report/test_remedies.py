"""What the page says about how runs ended, what to try, and how to repeat them."""

from surefoot.inspection.diagnosis import diagnose
from surefoot.inspection.report.page import report_page, reproduction
from surefoot.inspection.report.remedies import MOST_RUNS, remedies
from surefoot.inspection.report.run_groups import group_runs
from surefoot.inspection.report.tables import summary_table
from surefoot.telemetry.alerts import ALERTS
from tests.inspection.report.written_runs import START, append_log, records, write_run


def alerting(count):
    lines = records(count)
    for line in lines[5:]:
        line[ALERTS[0].key] = 1.0
    return lines


def test_the_remedies_of_doctor_are_on_the_page(tmp_path):
    run = write_run(tmp_path / "run", alerting(20))
    page = report_page([run])
    found = diagnose(run.path).findings
    assert found
    for finding in found:
        assert finding.title in page
        assert all(f"<li>{remedy}</li>" in page for remedy in finding.remedies)


def test_what_runs_have_in_common_is_said_once(tmp_path):
    runs = [write_run(tmp_path / f"seed{seed}", alerting(20), {"train.seed": seed}) for seed in range(MOST_RUNS + 1)]
    text = remedies(group_runs(runs[:2]))
    assert text.count(f"<b>{ALERTS[0].label}</b>") == 1
    assert " · seed0, seed1</p>" in text
    assert f"The first {MOST_RUNS} runs are diagnosed" in remedies(group_runs(runs))


def test_no_green_above_alerts_and_errors(tmp_path):
    warned = write_run(tmp_path / "warned", alerting(20))
    failed = write_run(tmp_path / "failed", records(20))
    append_log(failed, START, f"ended by an error: {'<b>' * 100}")
    table = summary_table(group_runs([warned]))
    assert '<span class="status warned">finished</span><small>1 alert still active</small>' in table
    table = summary_table(group_runs([failed]))
    assert '<span class="status failed">failed</span>' in table
    assert "&lt;b&gt;" in table
    assert "<b><b>" not in table
    assert '<span class="status finished">' not in table


def test_doctor_reports_the_error_that_ended_a_run(tmp_path):
    run = write_run(tmp_path / "run", records(20))
    append_log(run, START, "ended by an error: the cart is broken")
    (finding,) = [one for one in diagnose(run.path).findings if one.name == "ended_by_error"]
    assert (finding.severity, finding.meaning) == ("high", "the cart is broken")
    append_log(run, START)
    assert not [one for one in diagnose(run.path).findings if one.name == "ended_by_error"]


def test_nothing_that_a_config_names_is_imported(tmp_path, monkeypatch):
    (tmp_path / "traps.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    run = write_run(tmp_path / "run", alerting(20))
    config = run.path / "config.yaml"
    config.write_text(config.read_text().replace("kind: scalar", "kind: traps:Critic"))
    assert "traps:Critic" in config.read_text()
    from surefoot.inspection.run_record import read_run

    page = report_page([read_run(run.path)])
    assert "was not diagnosed here" in page
    assert f"surefoot doctor {run.path}" in page
    assert "a report does not import code that its config names" in page
    assert "--trust" not in page, "the command report has no such option"


def test_the_commands_that_repeat_a_run(tmp_path):
    run = write_run(tmp_path / "my run", records(2))
    text = reproduction(group_runs([run]))
    assert f"surefoot train --config &#x27;{run.path}/config.yaml&#x27; --run-dir &#x27;{run.path}-again&#x27;" in text
    assert "Typed" not in text
    (run.path / "log.txt").write_text('x INFO command: surefoot train CartPole-v1 --env.kwargs \'{"a": "<b>"}\'\n')
    text = reproduction(group_runs([run]))
    assert "surefoot train CartPole-v1 --env.kwargs &#x27;{&quot;a&quot;: &quot;&lt;b&gt;&quot;}&#x27;" in text
    assert "was resumed" not in text
    append_log(run, "command: surefoot resume run --steps 9")
    assert "was resumed" in reproduction(group_runs([run]))


def test_the_page_explains_why_evaluations_differ_from_training(tmp_path):
    assert "Why evaluations and training returns differ" in report_page([write_run(tmp_path / "run", records(20))])
    assert "Why evaluations" not in report_page([write_run(tmp_path / "bare", records(5))])
