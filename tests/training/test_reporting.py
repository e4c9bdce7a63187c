"""What reaches the sinks, and when; alerts are watched in every iteration, whatever is written."""

import logging
import math
from dataclasses import replace

import pytest

from surefoot.data.records import Episode, IterationReport, Learned, Progress, RolloutStats
from surefoot.settings.config import Config
from surefoot.telemetry import names
from surefoot.telemetry.sinks import Metrics
from surefoot.telemetry.watch import AlertWatch
from surefoot.training.reporting import Report, metrics_of


class Memory:
    def __init__(self) -> None:
        self.records: list[tuple[int, dict[str, float]]] = []

    def write(self, step: int, metrics: Metrics) -> None:
        self.records.append((step, dict(metrics)))

    def close(self) -> None:
        pass


def iteration(number: int, kl: float = 0.0, **metrics: float) -> IterationReport:
    learned = Learned(*[0.0] * 3, kl, 0.0, 0.0, 0.5, epochs=1, skipped_steps=0, lr=0.1, clip=0.2, entropy_coef=0.0)
    stats = RolloutStats(10, (), (Episode(2.0, 5), Episode(4.0, 7)))
    return IterationReport(Progress(10 * number, 1000, number), stats, learned, 0.5, 1.5, dict(metrics))


def run(every: int, kls: list[float]) -> list[tuple[int, dict[str, float]]]:
    memory = Memory()
    report = Report(memory, every, AlertWatch(Config()))
    for number, kl in enumerate(kls, 1):
        report.after_iteration(iteration(number, kl))
    return memory.records


def test_numbers_have_the_names_that_dashboards_know():
    metrics = metrics_of(iteration(3, 0.01, own=7.0), 12.0)
    expected = {"time/fps": 5.0, "time/time_elapsed": 12.0, "rollout/ep_rew_mean": 3.0, "rollout/ep_len_mean": 6.0}
    expected |= {"train/approx_kl": 0.01, "time/total_timesteps": 30.0, "time/rollout_fps": 20.0, "own": 7.0}
    assert {name: metrics[name] for name in expected} == expected


def test_a_clock_that_stands_still_costs_only_the_rates():
    metrics = metrics_of(replace(iteration(3), rollout_s=0.0, learn_s=-1.0), 0.0)
    assert metrics["time/fps"] == metrics["time/rollout_fps"] == 0.0


def test_metrics_of_envs_are_means_over_the_episodes_that_have_a_value():
    report = iteration(3)
    episodes = (Episode(1, 1, {"won": 1.0, "fell": math.nan}), Episode(2, 2), Episode(3, 3, {"won": 0.0, "far": 5.0}))
    metrics = metrics_of(replace(report, stats=replace(report.stats, recent=episodes)), 12.0)
    assert {name: value for name, value in metrics.items() if name.startswith("env/")} == {"env/won": 0.5, "env/far": 5}


def test_every_nth_iteration_any_with_something_from_a_hook_and_the_last():
    memory = Memory()
    report = Report(memory, 10, AlertWatch(Config()))
    for number in range(1, 101):
        report.after_iteration(iteration(number, **({"eval/mean_reward": 1.0} if number == 37 else {})))
    assert [step // 10 for step, _ in memory.records] == [10, 20, 30, 37, *range(40, 101, 10)]


def test_an_alert_shows_as_one_while_it_is_raised_and_as_zero_once():
    records = run(1, [0.1] * 12 + [0.0] * 15)
    series = [(step // 10, record["warn/kl_high"]) for step, record in records if "warn/kl_high" in record]
    assert series == [*((number, 1.0) for number in range(10, 22)), (22, 0.0)]


def test_with_a_larger_log_every_alerts_are_as_prompt_and_do_not_write_more():
    records = run(100, [0.1] * 12 + [0.0] * 15)
    assert [(step // 10, record["warn/kl_high"]) for step, record in records] == [(10, 1.0), (22, 0.0)]


def test_the_log_has_one_line_each(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="surefoot"):
        run(1, [0.1] * 12 + [0.0] * 15)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "warn/kl_high at step 100: the policy changes too much per update: training is unstable and the policy may"
            " collapse (train/approx_kl 0.1, median of 10 iterations)",
        ),
        ("INFO", "warn/kl_high cleared at step 220 (train/approx_kl 0, median of 10 iterations)"),
    ]


def test_memory_is_part_of_a_record():
    ((_, record),) = run(1, [0.0])
    assert record[names.RAM] > 10
