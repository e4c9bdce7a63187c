"""Names of their own, and times of runs that were resumed."""

from surefoot.inspection.report.reported_run import with_distinct_names
from tests.inspection.report.written_runs import records, write_run


def test_as_many_folders_as_it_takes(tmp_path):
    places = ("x/a/seed1", "x/b/seed1", "x/b/other")
    runs = [write_run(tmp_path / place, records(1)) for place in places]
    assert [run.name for run in with_distinct_names(runs)] == ["a/seed1", "b/seed1", "other"]


def test_a_run_given_twice_counts_once(tmp_path):
    run = write_run(tmp_path / "a", records(1))
    assert [found.name for found in with_distinct_names([run, run])] == ["a"]


def test_a_resumed_run_adds_its_times_up(tmp_path):
    lines = records(4)
    for line, elapsed in zip(lines, (1.0, 2.0, 0.5, 1.5), strict=True):
        line["time/time_elapsed"] = elapsed
    assert write_run(tmp_path / "run", lines).seconds == [1.0, 2.0, 2.5, 3.5]
