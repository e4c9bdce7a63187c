"""Numbers of the summary, and whether a run is over."""

from dataclasses import replace

import pytest
import yaml

from surefoot.inspection.report.run_summary import summarize
from surefoot.inspection.run_record import lock_holder
from surefoot.training.run_directory import RunDirectory
from tests.inspection.report.written_runs import START, append_log, records, write_run


def test_a_finished_run(tmp_path):
    run = write_run(tmp_path / "run", records(20))
    (tmp_path / "run" / "log.txt").write_text("x INFO surefoot 0.1.0, torch 2.9.0+cpu: CartPole-v1, seed 1\n")
    found = summarize(run)
    assert (found.status, found.steps, found.planned) == ("finished", 5120, 5120)
    assert found.final_return == run.records[-1]["rollout/ep_rew_mean"]
    assert found.best == (120.0, 5.0, 5120)
    assert found.seconds == 10.0
    assert found.steps_per_second == 512.0
    assert run.log.versions == "surefoot 0.1.0, torch 2.9.0+cpu"
    assert found.alerts == []


def test_the_best_evaluation_need_not_be_the_last(tmp_path):
    lines = records(20)
    lines[9]["eval/mean_reward"] = 999.0
    del lines[9]["eval/std_reward"]
    assert summarize(write_run(tmp_path / "run", lines)).best == (999.0, None, 2560)


def test_the_best_evaluation_is_the_one_whose_policy_was_kept(tmp_path):
    lines = records(30)
    for index, cvar in ((9, 3.0), (19, 7.0), (29, 5.0)):
        lines[index]["eval/cvar"] = cvar
    for best_metric, step in (("cvar", 5120), ("-cvar", 2560), ("mean_reward", 7680), ("missing", 7680)):
        run = write_run(tmp_path / best_metric, lines, {"train.best_metric": best_metric})
        assert summarize(run).best.step == step


def test_a_run_that_stopped_and_one_that_still_runs(tmp_path):
    run = write_run(tmp_path / "run", records(5), {"train.steps": 100_000})
    assert summarize(run).status == "stopped"
    with RunDirectory(tmp_path / "run"):
        assert lock_holder(run.path) is not None
        assert summarize(run).status == "running"
    assert lock_holder(run.path) is None


def test_looking_does_not_touch_the_lock(tmp_path):
    run = write_run(tmp_path / "run", records(5))
    with RunDirectory(tmp_path / "run"):
        pass
    lock_holder(run.path)
    with RunDirectory(tmp_path / "run"):
        """It could be locked again, so nothing holds it."""


def test_a_run_that_recorded_next_to_nothing(tmp_path):
    run = write_run(tmp_path / "run", [{"step": 7}], {"train.steps": 10})
    found = summarize(run)
    assert found.steps == 7
    missing = (found.final_return, found.best, found.seconds, found.steps_per_second, run.log.versions)
    assert missing == (None,) * 5


@pytest.mark.parametrize("config", ["{}", "train: {steps: many}", "train: [1]"])
def test_a_config_that_was_edited(tmp_path, config):
    run = write_run(tmp_path / "run", records(3))
    found = summarize(replace(run, config=yaml.safe_load(config)))
    assert (found.planned, found.status) == (None, "stopped")


def test_a_run_that_ended_with_an_error_has_failed(tmp_path):
    run = write_run(tmp_path / "run", records(20))
    append_log(run, START, "ended by an error: env 0 raised", "Traceback", "  ended by an error")
    found = summarize(run)
    assert (found.status, found.why) == ("failed", "env 0 raised")
    append_log(run, START)  # resumed since then
    assert (summarize(run).status, summarize(run).why) == ("finished", "")


def test_a_run_that_a_hook_stopped_has_finished(tmp_path):
    run = write_run(tmp_path / "run", records(5), {"train.steps": 100_000})
    append_log(run, START, "stopped at step 1280: mean return 475 reached")
    assert (summarize(run).status, summarize(run).why) == ("finished", "mean return 475 reached")


def test_alerts_that_are_active_at_the_end(tmp_path):
    lines = records(20)
    lines[3]["warn/kl_high"] = lines[19]["warn/entropy_low"] = 1.0
    assert len(summarize(write_run(tmp_path / "run", lines)).alerts) == 2
    assert len(summarize(write_run(tmp_path / "again", lines)).active_alerts) == 1
