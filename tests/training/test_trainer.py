"""The loop, its hooks, and when things are due."""

import pytest

from surefoot.api import PPO
from surefoot.data.records import IterationReport
from surefoot.storage.state import load_states, states
from surefoot.training.hook_group import HookGroup
from surefoot.training.hooks import Every, Hook
from surefoot.training.trainer import Trainer
from tests.training.states import assert_same


@pytest.fixture
def trainer() -> Trainer:
    """Iterations of 20 steps."""
    return small_trainer()


def small_trainer(**settings) -> Trainer:
    return PPO("CartPole-v1", num_envs=2, num_steps=10, batch_size=10, epochs=1, hidden=4, **settings)._started()


class Note(Hook):
    """Writes down who was called and with what."""

    def __init__(self, name: str, notes: list) -> None:
        super().__init__()
        self.name, self.notes = name, notes

    def after_iteration(self, report: IterationReport) -> None:
        self.notes.append((self.name, report.progress.step, dict(report.metrics)))
        report.metrics[self.name] = 1.0


def test_hooks_are_called_in_order_and_see_what_those_before_them_added(trainer):
    notes: list = []
    trainer.set_total(40)
    trainer.hooks = HookGroup({name: Note(name, notes) for name in ("first", "second")})
    trainer.train()
    assert notes == [
        ("first", 20, {}),
        ("second", 20, {"first": 1.0}),
        ("first", 40, {}),
        ("second", 40, {"first": 1.0}),
    ]


def test_a_report_says_what_happened(trainer):
    report = trainer.iterate()
    assert (report.progress.step, report.progress.iteration) == (20, 1)
    assert report.stats.num_steps == 20
    assert report.learned.epochs == 1
    assert report.rollout_s > 0
    assert report.learn_s > 0


@pytest.mark.parametrize(("total", "iterations"), [(1, 1), (20, 1), (21, 2), (60, 3)])
def test_whole_iterations_until_the_steps_are_used_up(trainer, total, iterations):
    trainer.set_total(total)
    trainer.train()
    assert trainer.progress.iteration == iterations
    trainer.train()
    assert trainer.progress.iteration == iterations, "there is nothing left to do"


def test_a_request_to_stop_is_heard_between_iterations(trainer):
    notes: list = []
    trainer.set_total(1000)
    trainer.hooks = HookGroup({"hook": Note("hook", notes)})
    trainer.train(should_stop=lambda: len(notes) == 3)
    assert trainer.progress.step == 60
    trainer.train(should_stop=lambda: True)
    assert len(notes) == 3


@pytest.mark.parametrize("engine", ["native", "local"])
def test_a_state_brought_to_another_trainer_goes_on_alike(engine):
    trainer, twin = small_trainer(engine=engine), small_trainer(engine=engine, seed=9)
    assert trainer.collector.rows.env.name == engine
    twin.learner._seed, twin.collector.rows.seed = 0, 0
    trainer.set_total(100)
    trainer.train(should_stop=lambda: trainer.progress.step == 60)
    twin.set_total(100)
    load_states(twin.stateful(), states(trainer.stateful()))
    assert twin.collector.rows.is_exact
    assert_same(states(twin.stateful()), states(trainer.stateful()))
    for one in (trainer, twin):
        one.train()
    assert trainer.progress.step == 100
    assert_same(states(twin.stateful()), states(trainer.stateful()))


def due(every: Every, steps: list[int]) -> list[int]:
    return [step for step in steps if every.is_due(step)]


def test_every_is_due_once_for_each_multiple_passed():
    assert due(Every(100), [30, 60, 90, 120, 150, 180, 210, 240]) == [120, 210]
    assert due(Every(100), [100, 200, 300]) == [100, 200, 300]


def test_every_is_due_once_however_many_multiples_were_passed():
    assert due(Every(10), [35, 36, 40, 99]) == [35, 40, 99]


def test_every_never_is_for_0():
    assert due(Every(0), [1, 10, 100]) == []


def test_every_counts_on_from_where_a_run_was():
    whole, resumed = Every(100), Every(100, start=150)
    assert due(whole, [50, 150, 180, 250]) == [150, 250]
    assert due(resumed, [180, 250]) == [250]
