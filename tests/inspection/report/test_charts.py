"""What the charts hold."""

import math

import numpy as np
import pytest

from surefoot.inspection.report.alert_lanes import MOST_LANES, alerts_chart
from surefoot.inspection.report.charts import (
    DIAGNOSTICS,
    MOST_POINTS,
    MOST_POINTS_SMALL,
    diagnostic_charts,
    env_metric_charts,
    evaluation_band_chart,
    evaluation_chart,
    learning_chart,
    metric_chart,
)
from surefoot.inspection.report.returns import shown_evaluations
from surefoot.inspection.report.run_groups import group_runs
from surefoot.inspection.report.timings import phase_totals, timing_charts, totals_chart
from surefoot.inspection.report.traces import TimeUnit, color_of, dash_of, rounded, time_unit
from surefoot.telemetry import names
from tests.inspection.report.written_runs import record, records, write_evaluations, write_run

SECONDS = TimeUnit("seconds", 1)


@pytest.fixture
def seeds(tmp_path):
    """Three seeds, and one run with another learning rate."""
    runs = [write_run(tmp_path / f"seed{seed}", records(20, seed), {"train.seed": seed}) for seed in (1, 2, 3)]
    return group_runs([*runs, write_run(tmp_path / "fast", records(20, 9), {"optimizer.lr": 0.01})])


def test_a_group_is_a_band_and_a_mean_in_its_color(seeds):
    traces = metric_chart(seeds[:1], names.APPROX_KL, "KL", SECONDS).traces
    low, high, mean = (np.array(trace["levels"]["off"]["y"]) for trace in traces)
    expected = np.array([[value for _, value in run.series(names.APPROX_KL)] for run in seeds[0].runs])
    np.testing.assert_allclose(mean, expected.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(low, expected.min(axis=0), rtol=1e-4)
    np.testing.assert_allclose(high, expected.max(axis=0), rtol=1e-4)
    assert traces[1]["fill"] == "tonexty"
    assert traces[2]["line"]["color"] == color_of(0)


def test_every_metric_of_the_envs_has_a_chart(seeds, tmp_path):
    assert env_metric_charts(seeds, SECONDS) == []
    found = [one | {"env/is_success": 0.1 * index} for index, one in enumerate(records(3))]
    found[2]["env/margin"] = 4.0
    charts = env_metric_charts(group_runs([write_run(tmp_path / "own", found)]), SECONDS)
    assert [chart.title for chart in charts] == ["is_success", "margin"]
    assert charts[0].traces[0]["y"] == rounded([0, 0.1, 0.2])
    assert charts[0].note == "mean of the last 100 episodes"


def test_a_single_run_is_its_curve_over_its_raw_values(seeds):
    raw, smoothed = metric_chart(seeds[1:], names.VALUE_LOSS, "value loss", SECONDS).traces
    values = [value for _, value in seeds[1].runs[0].series(names.VALUE_LOSS)]
    assert raw["y"] == smoothed["levels"]["off"]["y"] == rounded(values)
    assert np.std(smoothed["levels"]["strong"]["y"]) < np.std(values)
    assert raw["views"]["steps"]["x"] == [256 * (index + 1) for index in range(20)]
    assert raw["views"]["time"]["x"] == [0.5 * (index + 1) for index in range(20)]
    assert raw["opacity"] < 1


def test_learning_shows_evaluations_with_their_spread(seeds):
    group, single = [trace for trace in learning_chart(seeds, SECONDS).traces if "error_y" in trace]
    # Rewards are 100 + index + seed: the mean of seeds 1, 2, 3, from the lowest to the highest.
    assert (group["y"], group["error_y"]["array"], group["error_y"]["arrayminus"]) == ([111, 121], [1, 1], [1, 1])
    assert (single["y"], single["error_y"]["array"]) == ([118, 128], [5, 5])


def test_evaluation_draws_every_run_of_a_group(seeds):
    """A run that is alone in its group has its evaluations in the learning chart, and they are not shown twice."""
    traces = evaluation_chart(seeds, SECONDS).traces
    assert [trace["name"] for trace in traces] == [f"{name} (evaluation)" for name in ("seed1", "seed2", "seed3")]
    assert traces[0]["views"]["steps"]["x"] == [2560, 5120]
    assert evaluation_chart(seeds[1:], SECONDS) is None


def test_bands_of_evaluations_are_not_smoothed(seeds):
    """Three raw lines, and the mean of 100 + index + seed over seeds 1, 2, 3 in its band; one line for a single run."""
    *_, low, high, mean, one = (
        evaluation_band_chart(seeds, SECONDS).traces[:6] + evaluation_band_chart(seeds[1:], SECONDS).traces[-1:]
    )
    for level in ("off", "light", "strong"):
        found = [trace["levels"][level]["y"] for trace in (low, high, mean, one)]
        assert found == [[110, 120], [112, 122], [111, 121], [118, 128]]


def test_an_evaluation_that_was_made_up_for_is_drawn_once(tmp_path):
    """Its returns have the step of the policy, its metrics those of the next record, or of none."""
    lines = records(6)
    lines[3] |= {"eval/mean_reward": 7.0, "eval/std_reward": 2.0, "eval/cvar": 5.0}
    run = write_run(tmp_path / "run", lines)
    write_evaluations(run.path, {768: [5.0, 9.0], 1536: [3.0, 5.0]})
    (trace,) = [trace for trace in learning_chart(group_runs([run]), SECONDS).traces if "error_y" in trace]
    assert trace["views"]["steps"]["x"] == [768, 1536]
    assert trace["views"]["time"]["x"] == [1.5, 3]
    assert (trace["y"], trace["error_y"]["array"]) == ([7, 4], [2, 1])
    assert sorted(run.evaluated[0].figures) == ["eval/cvar", "eval/mean_reward", "eval/std_reward"]
    assert [one.title for one in shown_evaluations(group_runs([run]))] == [
        "Last evaluation, step 1,536",
        "Best evaluation, step 768",
    ]


def test_evaluations_of_the_same_score_are_different_ones(tmp_path):
    lines = records(4)
    for line in lines[1::2]:
        line |= {"eval/mean_reward": 500.0}
    run = write_run(tmp_path / "run", lines)
    write_evaluations(run.path, {512: [500.0], 1024: [500.0]})
    assert [one.step for one in run.evaluated] == [512, 1024]


@pytest.mark.parametrize(
    ("values", "is_log"),
    [
        ([1e-6, 1e-4, 1e-2], True),
        ([0.001, 0.05], False),
        ([-1e-6, 1e-4, 1e-2], False),
        ([0.0, 1e-4, 1e-2], False),
        ([0.0, *[1e-4, 1e-2] * 10], True),
        ([0.0, 0.0], False),
    ],
)
def test_positive_values_that_span_decades_have_a_logarithmic_axis(tmp_path, values, is_log):
    lines = [{**record(index), names.APPROX_KL: value} for index, value in enumerate(values)]
    (chart, *_) = diagnostic_charts(group_runs([write_run(tmp_path / "run", lines)]), SECONDS)
    assert chart.title == "KL divergence (nats)"
    assert (chart.layout.get("yaxis", {}).get("type") == "log") is is_log
    assert chart.note.endswith("logarithmic axis") is is_log


@pytest.mark.parametrize(("most", "title", "last"), [(900.0, "Memory (MiB)", 900), (3072.0, "Memory (GiB)", 3)])
def test_memory_begins_at_zero_in_its_unit(tmp_path, most, title, last):
    lines = [{**record(index), names.RAM: most - 100 * (3 - index)} for index in range(4)]
    chart = timing_charts(group_runs([write_run(tmp_path / "run", lines)]), SECONDS)[-1]
    assert (chart.title, chart.layout["yaxis"]["rangemode"], chart.traces[0]["y"][-1]) == (title, "tozero", last)


def test_entropy_is_shown_as_entropy(seeds):
    chart = next(chart for chart in diagnostic_charts(seeds, SECONDS) if chart.title.startswith("Entropy"))
    assert set(chart.traces[-1]["levels"]["off"]["y"]) == {0.6}


def test_what_was_not_recorded_has_no_chart(seeds, tmp_path):
    titles = {chart.title for chart in diagnostic_charts(seeds, SECONDS)}
    assert titles == {wanted.title for wanted in DIAGNOSTICS} - {"Action std"}
    bare = group_runs([write_run(tmp_path / "bare", [{"step": 1}])])
    assert diagnostic_charts(bare, SECONDS) == timing_charts(bare, SECONDS) == []
    assert learning_chart(bare, SECONDS) is evaluation_chart(bare, SECONDS) is totals_chart(bare) is None
    assert alerts_chart(bare, SECONDS) is None


def test_charts_of_the_same_runs_have_the_same_axis(seeds):
    charts = [learning_chart(seeds, SECONDS), evaluation_chart(seeds, SECONDS), *diagnostic_charts(seeds, SECONDS)]
    assert {tuple(chart.ranges["steps"]) for chart in charts} == {(0, 5120 * 1.01)}


def test_long_series_are_thinned_and_keep_their_spikes(tmp_path):
    lines = [record(index) for index in range(5000)]
    lines[2345]["train/approx_kl"] = 77.0
    groups = group_runs([write_run(tmp_path / "long", lines)])
    small = metric_chart(groups, names.APPROX_KL, "KL", SECONDS).traces[0]
    large = metric_chart(groups, names.APPROX_KL, "KL", SECONDS, is_large=True).traces[0]
    assert MOST_POINTS_SMALL / 2 < len(small["y"]) <= MOST_POINTS_SMALL
    assert MOST_POINTS / 2 < len(large["y"]) <= MOST_POINTS
    assert max(small["y"]) == max(large["y"]) == 77.0


def test_alert_lanes_line_up_with_the_curves(tmp_path):
    lines = records(20)
    for index in (3, 4, 10):
        lines[index]["warn/kl_high"] = 1.0
    groups = group_runs([write_run(tmp_path / "run", lines)])
    chart = alerts_chart(groups, SECONDS)
    (bars,) = chart.traces
    assert bars["views"]["steps"] == {"base": [768, 2560], "x": [512, 256]}
    assert bars["views"]["time"] == {"base": [1.5, 5], "x": [1, 0.5]}
    assert bars["y"] == [0, 0]
    assert chart.ranges == learning_chart(groups, SECONDS).ranges
    assert [label["text"] for label in chart.layout["annotations"]] == ["KL high · run"]


def test_names_are_drawn_as_they_are(tmp_path):
    """Plotly would read their tags."""
    lines = records(20)
    lines[3]["warn/<i>odd"] = 1.0
    groups = group_runs([write_run(tmp_path / "<b>run", lines)])
    (label,) = alerts_chart(groups, SECONDS).layout["annotations"]
    assert label["text"] == "&lt;i&gt;odd · &lt;b&gt;run"
    assert learning_chart(groups, SECONDS).traces[0]["name"] == "&lt;b&gt;run"
    assert "&lt;b&gt;run" in totals_chart(groups).layout["annotations"][0]["text"]


def test_the_runs_of_a_group_share_lanes_where_there_would_be_too_many(tmp_path):
    lines = records(3)
    lines[1] |= {f"warn/{name}": 1.0 for name in ("a", "b", "c", "d")}
    runs = [write_run(tmp_path / f"seed{seed}", lines, {"train.seed": seed}) for seed in range(8)]
    few, many = (alerts_chart(group_runs(some), SECONDS) for some in (runs[:7], runs))
    assert len(few.layout["annotations"]) == 28 <= MOST_LANES
    assert len(many.layout["annotations"]) == 4
    assert len(many.traces[0]["y"]) == 32


def test_time_by_phase_adds_up(tmp_path):
    run = write_run(tmp_path / "run", records(20))
    found = phase_totals(run)
    assert list(found.values()) == pytest.approx([2.0, 6.0, 2.0])
    bars = totals_chart(group_runs([run])).traces
    assert [bar["x"] for bar in bars] == [pytest.approx([20]), pytest.approx([60]), pytest.approx([20])]


def test_records_that_skip_iterations_still_count_all_of_them(tmp_path):
    run = write_run(tmp_path / "run", records(20)[9::10])
    assert list(phase_totals(run).values()) == pytest.approx([2.0, 6.0, 2.0])


def test_seconds_of_an_iteration_are_stacked(seeds):
    speed, first, second = timing_charts(seeds, SECONDS)
    assert (speed.title, first.group, second.group) == ("Steps per second", 0, 1)
    assert [trace["stackgroup"] for trace in first.traces] == ["phases", "phases"]
    assert [trace["levels"]["off"]["y"][0] for trace in first.traces] == [0.1, 0.3]


def test_every_group_looks_different():
    assert len({(color_of(index), dash_of(index)) for index in range(30)}) == 30


def test_time_units():
    assert [time_unit(seconds).name for seconds in (10, 1000, 20_000)] == ["seconds", "minutes", "hours"]


def test_rounding_keeps_what_the_eye_sees():
    assert rounded([20224.0, math.pi, 1e-7 / 3]) == [20224, 3.1416, 3.3333e-8]


@pytest.mark.parametrize(("value", "axis"), [(3e-4, [0.0, 6e-4]), (-2.0, [-4.0, 0.0])])
def test_what_never_changes_can_be_read_off_its_axis(tmp_path, value, axis):
    lines = [{**line, names.LEARNING_RATE: value} for line in records(5)]
    groups = group_runs([write_run(tmp_path / "run", lines)])
    assert metric_chart(groups, names.LEARNING_RATE, "lr", SECONDS).layout == {"yaxis": {"range": axis}}
    assert metric_chart(groups, names.APPROX_KL, "KL", SECONDS).layout == {}
