import pytest

from surefoot.telemetry import gauges, names
from surefoot.telemetry.gauges import Exploration, Throughput, clipped, explained, usual_clip_fraction


def test_the_clip_fraction_that_a_high_kl_gives():
    """P(|z| > clip / sqrt(2 * 0.05)) for a standard normal z, from a table of the normal distribution."""
    assert usual_clip_fraction(0.1) == pytest.approx(0.7518, abs=1e-4)  # z = 0.3162
    assert usual_clip_fraction(0.2) == pytest.approx(0.5271, abs=1e-4)  # z = 0.6325


def test_clipping_is_relative_to_the_clip_range_of_the_update():
    wide, narrow = ({names.CLIP_FRACTION: 0.6, names.CLIP_RANGE: clip} for clip in (0.2, 0.1))
    assert clipped(wide) == pytest.approx(0.6 / 0.5271, abs=1e-3)
    assert clipped(narrow) == pytest.approx(0.6 / 0.7518, abs=1e-3)
    assert clipped({names.CLIP_FRACTION: 0.6}) is None


def test_explained_variance_counts_where_the_error_matters():
    bad = {names.EXPLAINED_VARIANCE: -5.0}
    assert explained(bad) == -5.0
    assert explained({**bad, names.VALUE_ERROR: 0.5}) == -5.0
    assert explained({**bad, names.VALUE_ERROR: 0.01}) == 1.0, "nearly constant returns, nearly right values"
    assert explained({}) is None


def test_exploration_of_discrete_actions_is_the_share_of_entropy():
    gauge = Exploration()
    assert [gauge({names.ENTROPY_LOSS: -entropy}) for entropy in (2.0, 1.0, 0.1)] == [1.0, 0.5, 0.05]
    assert gauge({}) is None


def test_exploration_of_continuous_actions_is_the_share_of_the_std():
    """Differential entropy crosses zero on its way, and says nothing as a share."""
    gauge = Exploration()
    readings = [{names.ENTROPY_LOSS: loss, names.STD: std} for loss, std in ((-1.4, 1.0), (0.1, 0.25), (3.0, 0.01))]
    assert [gauge(reading) for reading in readings] == [1.0, 0.25, 0.01]


def test_no_exploration_from_the_start_is_no_collapse():
    gauge = Exploration()
    assert [gauge({names.ENTROPY_LOSS: 0.0}), gauge({names.ENTROPY_LOSS: 0.0})] == [None, None]


def iteration(rate: float, seconds: float) -> dict[str, float]:
    return {names.STEPS_PER_SECOND: rate, names.ROLLOUT_SECONDS: seconds / 2, names.LEARN_SECONDS: seconds / 2}


def test_throughput_waits_for_iterations_and_seconds():
    gauge = Throughput()
    assert [gauge(iteration(100, 2.0)) for _ in range(20)] == [None] * 19 + [1.0]
    gauge = Throughput()
    assert [gauge(iteration(100, 0.5)) for _ in range(60)] == [None] * 59 + [1.0]


def test_throughput_is_relative_to_the_best_so_far():
    gauge = Throughput()
    levels = [gauge(iteration(rate, 2.0)) for rate in [50] * 30 + [100] * 30 + [20] * 30]
    assert levels[29] == 1.0
    assert levels[59] == 1.0, "faster is no drop"
    assert levels[60:68] == [1.0] * 8, "a busy moment"
    assert levels[-1] == 0.2


def test_a_break_in_one_iteration_is_no_drop():
    gauge = Throughput()
    levels = [gauge(iteration(rate, 2.0)) for rate in [100] * 30 + [1] + [100] * 30]
    assert min(level for level in levels if level is not None) == 1.0


def test_waiting_for_a_cpu_is_no_drop():
    """Others take three quarters of the machine; the run itself is as fast as before."""
    gauge = Throughput()
    busy = {**iteration(25, 2.0), names.CPU_WAIT: 0.75}
    levels = [gauge(metrics) for metrics in [iteration(100, 2.0)] * 30 + [busy] * 30]
    assert levels[-1] == 1.0
    starved = {**iteration(1, 2.0), names.CPU_WAIT: 1.0}
    assert [gauge(starved) for _ in range(30)][-1] == pytest.approx(0.2)


def test_the_window_is_long_enough_for_a_busy_machine():
    assert gauges.THROUGHPUT_WINDOW >= 20
    assert gauges.THROUGHPUT_S >= 30
