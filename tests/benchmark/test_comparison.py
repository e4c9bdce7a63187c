"""Who takes part in a comparison."""

from dataclasses import replace

import pytest

from benchmarks.comparison import (
    Comparison,
    Sides,
    bench_peers,
    choose_sides,
    choose_tasks,
    ratios,
)
from benchmarks.peers import PEERS
from benchmarks.sides import OURS, find_side
from benchmarks.tasks import TASKS, Task
from surefoot.benchmark import subject_process
from surefoot.benchmark.cells import FAILED
from surefoot.benchmark.rounds import Effort, Measured, Spread
from surefoot.benchmark.subject import Window
from surefoot.errors import ConfigError
from surefoot.machine.extras import install_hint
from tests.jobs import forked


@pytest.fixture(autouse=True)
def _forked_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject_process, "subprocess", forked)


def test_every_peer_says_who_it_is() -> None:
    assert list(OURS) == ["native", "local", "processes"]
    assert PEERS.names() == ["envpool", "rsl-rl", "sb3", "sb3-contrib", "sb3-subproc", "skrl"]
    titles = {find_side(name).title for name in [*OURS, *PEERS.names()]}
    assert len(titles) == len(OURS) + len(PEERS.names())


def test_a_peer_that_is_not_installed_is_left_out_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PEERS["envpool"], "needs", ("no_such_package",))
    monkeypatch.setattr(PEERS["sb3"], "needs", ("torch",))  # whether the extra is there or not
    sides = choose_sides([], ["envpool", "sb3"])
    assert sides.peers == ["sb3"]
    assert sides.absent == {
        "envpool": f"no_such_package is not installed; {install_hint('peers')}",
    }
    assert sides.engines == ["native", "local", "processes"]


def test_names_that_nobody_has() -> None:
    with pytest.raises(ConfigError, match="there is no 'sb33'; did you mean 'sb3'"):
        choose_sides([], ["sb33"])
    with pytest.raises(ConfigError, match="--engines"):
        choose_sides(["locall"], [])
    with pytest.raises(ConfigError, match="did you mean 'cartpole-8'"):
        choose_tasks(["cartpole8"])
    assert choose_tasks([]) == list(TASKS.values())


def test_ratios_of_the_whole_and_of_the_rollout() -> None:
    ours = Measured("local", [Window(1, 100, 0.1, 0.1), Window(1, 100, 0.2, 0.2)])
    theirs = Measured("sb3", [Window(1, 100, 0.2, 0.2), Window(1, 100, 0.8, 0.2)])
    both = ratios(ours, theirs)
    assert both is not None
    assert both["end to end"] == Spread(pytest.approx(2.25), pytest.approx(2.0), pytest.approx(2.5))
    assert both["rollout only"] == Spread(pytest.approx(3.0), pytest.approx(2.0), pytest.approx(4.0))
    assert ratios(ours, Measured("sb3", error="fell over")) is None


def test_what_is_measured_is_kept_after_every_task_and_a_failure_is_shown() -> None:
    """The second task takes its process down."""
    sound = Task("sound", "CartPole-v1", 2, 16, 1, 2, (4,))
    fatal = replace(sound, name="fatal", env="tests.benchmark.odd_envs:Fatal-v0")
    kept: list[int] = []
    report = bench_peers(
        Comparison([sound, fatal], Sides(["local"], [], {})),
        Effort(repeats=1, seconds=0.05, warmup=1),
        lambda line: None,
        lambda report: kept.append(len(report.tables)),
    )
    assert kept == [1, 2]
    first, second = report.tables
    assert first.rows[0][0] == second.rows[0][0] == "Surefoot local"
    assert first.rows[0][1] != FAILED
    assert second.rows[0][1] == FAILED
    assert "fatal: local failed: its process exited with code 7" in report.notes
    assert report.results["failed"] == ["fatal: local"]


def test_who_takes_no_part_at_a_task_is_named() -> None:
    task = Task("tiny-memory", "CartPoleNoVel-v1", 2, 16, 1, 2, (4,), lstm=4)
    said: list[str] = []
    report = bench_peers(
        Comparison([task], Sides(["local"], ["sb3", "envpool"], {}), threads=1),
        Effort(repeats=1, seconds=0.05, warmup=1),
        said.append,
        lambda report: None,
    )
    note = "tiny-memory: not for SB3 DummyVecEnv; EnvPool, plain loop."
    assert note in report.notes
    assert note in said
    (table,) = report.tables
    assert [row[0] for row in table.rows] == ["Surefoot local"]
    assert report.results["failed"] == []


def test_a_task_for_nobody_is_no_failure() -> None:
    masked = Task("masked", "benchmarks.masked_choice:MaskedChoice-v0", 2, 16, 1, 2, (4,), has_masks=True)
    sides = Sides(["native"], ["sb3"], {})
    report = bench_peers(Comparison([masked], sides), Effort(), lambda line: None, lambda report: None)
    assert "masked: not for Surefoot native; SB3 DummyVecEnv." in report.notes
    assert report.results["failed"] == []
