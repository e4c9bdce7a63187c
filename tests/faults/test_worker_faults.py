"""Faults 12 to 16 with real processes: envs that raise, die and hang, and a parent that is killed."""

import logging
import os
import re
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot import PPO
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines.processes import ProcessEngine, WorkerTraceError
from surefoot.envs.protocol import Slot, new_slot, step_all
from surefoot.errors import EnvError
from surefoot.learning.estimators.gae import gae
from surefoot.policies.actor_critic import ActorCritic
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.settings.config import NormalizeConfig, PolicyConfig, RolloutConfig
from tests.cli.processes import Process
from tests.envs.engines.test_processes import children, is_alive
from tests.envs.tasks import CounterEnv, SavingEnv
from tests.envs.unruly import UnrulyEnv
from tests.faults.faulty_envs import (
    OddEnv,
    ParentEnv,
    ShowingWorse,
    UnkeepableEnv,
    UnrulySavingEnv,
    close_everything_and_stay,
    leave_a_child_and_die,
    raise_many_lines,
    raise_wordless,
)

SEED = 3


def rollout_of(**settings: Any) -> RolloutConfig:
    engine = {key: settings.pop(key) for key in ("max_restarts", "step_timeout_s") if key in settings}
    return RolloutConfig(engine={"kind": "processes", **engine}, **settings)


def engine_of(bad: int, count: int = 4, **kwargs: Any) -> ProcessEngine:
    """Counters, of which one misbehaves; two workers have half of them each."""
    config = {key: kwargs.pop(key) for key in ("max_restarts", "step_timeout_s", "groups") if key in kwargs}
    makers: list[Any] = [partial(CounterEnv, index=index, lengths=(9,)) for index in range(count)]
    makers[bad] = partial(UnrulyEnv, index=bad, lengths=(9,), **kwargs)
    return ProcessEngine(Blueprint(makers, SEED), rollout_of(workers=2, **config))


def opened(engine: ProcessEngine) -> Slot:
    slot = new_slot(engine.num_rows, engine.obs_spec, engine.mask_size)
    engine.reset(slot)
    return slot


def step(engine: ProcessEngine, slot: Slot) -> None:
    step_all(engine, np.zeros(engine.num_rows, dtype=np.int64), slot)


def end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that hang get no time to end by themselves."""
    monkeypatch.setattr("surefoot.envs.engines.worker_process._GRACE_S", 0.1)


WAYS = {
    "raise": (
        r"env 3 \(seed \d+\) raised an exception in step: RuntimeError: the step is broken",
        "the step is broken",
    ),
    "abort": (r"worker 1 was killed by SIGABRT in step of env 3 \(seed \d+\)", "unruly.py"),
    "exit": (r"worker 1 exited with code 7 in step of env 3 \(seed \d+\)", ""),
    "sleep": (r"worker 1 made no progress for 1 s in step of env 3 \(seed \d+\)", "unruly.py"),
    "spin": (r"worker 1 made no progress for 1 s in step of env 3 \(seed \d+\)", "unruly.py"),
}


@pytest.mark.parametrize("how", WAYS)
def test_a_worker_that_fails_is_reported_and_replaced_and_its_rows_do_not_count(how, tmp_path, caplog):
    message, trace = WAYS[how]
    with (
        caplog.at_level(logging.INFO, "surefoot"),
        engine_of(3, where="step", how=how, at=2, once=tmp_path / "done", step_timeout_s=1) as engine,
    ):
        slot = opened(engine)
        for _ in range(2):
            step(engine, slot)
            assert slot.valid.all()
        luck = slot.obs[:, 4].copy()
        step(engine, slot)
        assert slot.valid.tolist() == [True, True, False, False], "a step that was not made"
        assert slot.truncated.tolist() == [False, False, True, True], "their episodes end here"
        assert not slot.terminated.any()
        assert slot.reward[2:].tolist() == [0, 0]
        assert slot.obs[:, 2].tolist() == [3, 3, 0, 0], "and new ones begin"
        assert not np.isin(slot.obs[2:, 4], luck).any(), "which are other ones"
        for following in range(1, 4):
            step(engine, slot)
            assert slot.valid.all()
            assert slot.obs[:, 2].tolist() == [3 + following] * 2 + [following] * 2
        assert engine.restarts == 1
    warning, where = caplog.records
    text = warning.getMessage()
    assert warning.levelno == logging.WARNING
    assert where.levelno == logging.INFO, "the terminal shows one line"
    assert "\n" not in text
    assert text.count("restarting worker 1 (1 of 10 restarts per hour)") == 1
    assert re.match(message, text), text
    assert trace in where.getMessage()


def test_a_death_between_steps_is_noticed_at_the_next(tmp_path):
    before = children(os.getpid())
    with engine_of(0, where="never", how="raise") as engine:
        slot = opened(engine)
        step(engine, slot)
        for pid in children(os.getpid()) - before:
            os.kill(pid, signal.SIGKILL)
        step(engine, slot)
        assert not slot.valid.any()
        assert engine.restarts == 2
        step(engine, slot)
        assert slot.valid.all()


def test_groups_in_flight_are_lost_together_and_once(tmp_path):
    """Env 1 of group 0 dies while group 1 has been sent: the same worker's env 3 is lost as well, and only once."""
    with engine_of(1, where="step", how="abort", at=1, once=tmp_path / "done", groups=2) as engine:
        slot = opened(engine)
        step(engine, slot)
        actions = np.zeros(2, dtype=np.int64)
        engine.send(0, actions)
        engine.send(1, actions)
        engine.receive(0, slot)
        engine.send(0, actions)  # group 0 goes on before group 1 has been heard of
        engine.receive(1, slot)
        assert slot.valid.tolist() == [True, False, True, False]
        engine.receive(0, slot)
        assert slot.valid.tolist() == [True, True, True, False]
        step(engine, slot)
        assert slot.valid.all()
        assert slot.obs[:, 2].tolist() == [4, 2, 3, 1]


def test_restarts_have_a_limit_and_what_ends_there_says_so():
    with engine_of(2, where="step", how="raise", at=1, max_restarts=2) as engine:
        slot = opened(engine)
        for _ in range(5):  # a new worker's second step fails again
            step(engine, slot)
        with pytest.raises(
            EnvError, match=r"restarted 2 times within an hour \(rollout\.engine\.max_restarts\)"
        ) as caught:
            step(engine, slot)
        assert isinstance(caught.value.__cause__, WorkerTraceError)
        assert "RuntimeError: the step is broken" in str(caught.value.__cause__)


def test_by_choice_the_first_fault_is_raised():
    with engine_of(2, where="step", how="raise", max_restarts=0) as engine:
        slot = opened(engine)
        with pytest.raises(
            EnvError, match=r"env 2 \(seed \d+\) raised an exception in step: RuntimeError: the step is broken"
        ):
            step(engine, slot)


CONSTRUCTION = [
    ("constructor", "raise", "env 3 could not be created: RuntimeError: the constructor is broken"),
    ("constructor", "abort", "worker 1 was killed by SIGABRT in the constructor of env 3"),
    ("constructor", "sleep", r"worker 1 made no progress for 1 s in the constructor of env 3"),
    ("reset", "raise", r"env 3 \(seed \d+\) raised an exception in reset: RuntimeError: the reset is broken"),
    ("reset", "sleep", r"worker 1 made no progress for 1 s in reset of env 3"),
]


@pytest.mark.parametrize(("where", "how", "message"), CONSTRUCTION)
def test_what_fails_before_the_first_step_is_raised_and_leaves_no_process(where, how, message, monkeypatch):
    if how == "sleep":
        end_at_once(monkeypatch)
    before = children(os.getpid())
    with pytest.raises(EnvError, match=message):
        opened(engine_of(3, where=where, how=how, step_timeout_s=1))
    assert children(os.getpid()) == before


def test_a_reset_within_a_step_that_hangs_is_ended_too(tmp_path):
    makers = [partial(UnrulyEnv, "reset", "sleep", 2, tmp_path / "done", index=0, lengths=(2,))]
    config = rollout_of(workers=1, step_timeout_s=1)
    with ProcessEngine(Blueprint(makers, SEED), config) as engine:
        slot = opened(engine)
        step(engine, slot)
        step(engine, slot)
        assert engine.restarts == 1
        assert not slot.valid[0]


def test_close_does_not_wait_for_an_env_that_hangs(monkeypatch):
    end_at_once(monkeypatch)
    engine = engine_of(0, where="step", how="sleep")
    slot = opened(engine)
    before = children(os.getpid())
    engine.send(0, np.zeros(4, dtype=np.int64))
    time.sleep(0.2)
    engine.close()
    assert slot is not None
    assert not any(is_alive(pid) for pid in before - children(os.getpid()))
    with pytest.raises(EnvError, match="closed"):
        engine.receive(0, slot)


def test_many_slow_envs_are_not_taken_for_one_that_hangs():
    class Slow(CounterEnv):
        def step(self, action: Any) -> Any:
            time.sleep(0.2)
            return super().step(action)

    config = rollout_of(workers=1, step_timeout_s=1)
    with ProcessEngine(Blueprint([Slow] * 6, SEED), config) as engine:
        step(engine, opened(engine))
        assert engine.restarts == 0


def test_lost_steps_enter_nothing_that_is_learned(tmp_path):
    with engine_of(3, where="step", how="exit", at=5, once=tmp_path / "done") as engine:
        policy = ActorCritic(engine.obs_spec, engine.action_spec, PolicyConfig(), NormalizeConfig())
        collector = StepwiseCollector(engine, policy, 8, SEED)
        rollout = collector.collect(policy)
        assert rollout.num_steps == 8 * 4 - 2
        assert rollout.stats.worker_restarts == 1
        assert rollout.valid[5].tolist() == [True, True, False, False]
        assert rollout.episode_start[6].tolist() == [False, False, True, True]
        assert [episode.length for episode in rollout.stats.finished] == [], "no episode was played to its end"
        arguments = (rollout.reward, rollout.value, rollout.last_value, rollout.terminated, rollout.truncated)
        advantage, _ = gae(*arguments, rollout.final_value, 0.9, 0.8, rollout.valid)
        assert advantage[5, 2:].eq(0).all()
        # The last true step bootstraps from V of the observation it led to, as if the rollout had ended there.
        expected = rollout.reward[4] + 0.9 * rollout.value[5] - rollout.value[4]
        assert torch.allclose(advantage[4, 2:], expected[2:])
        collector.collect(policy)
        assert collector.rows.episodes._length.tolist() == [7, 7, 1, 1]


def learn_with_unruly_envs(folder: str, how: str) -> None:
    make = partial(UnrulyEnv, "step", how, 20, lengths=(9,))
    PPO(make, engine="processes", workers=2, num_envs=4, num_steps=8, batch_size=32, max_restarts=2).learn(
        10_000, run_dir=folder
    )


@pytest.mark.parametrize("how", ["raise", "abort"])
def test_past_the_limit_the_run_is_saved_and_can_go_on(how, tmp_path):
    with pytest.raises(EnvError, match=r"saved at step 156; 'surefoot resume .*' continues the run"):
        learn_with_unruly_envs(str(tmp_path), how)  # 4 of 5 rollouts of 32 steps, two of which lost two steps
    log = (tmp_path / "log.txt").read_text()
    assert log.count("restarting worker") == 2
    assert "unruly.py" in log
    newest = max((tmp_path / "checkpoints").iterdir())
    agent = PPO.load(newest, partial(CounterEnv, lengths=(9,)))
    agent.learn(64)
    assert agent._run is not None
    assert agent.steps_trained == 156 + 64
    agent.close()


def hang_in_a_worker(folder: str) -> None:
    (Path(folder) / "workers").write_text("")
    engine = engine_of(0, where="step", how="spin", step_timeout_s=600)
    slot = opened(engine)
    (Path(folder) / "workers").write_text(" ".join(map(str, children(os.getpid()))))
    step(engine, slot)


def test_workers_die_with_a_parent_that_is_killed_even_while_they_hang(tmp_path):
    """Fault 12."""
    process = Process(hang_in_a_worker, str(tmp_path))
    file = tmp_path / "workers"
    process.wait_until(lambda: file.exists() and file.read_text() != "")
    time.sleep(0.2)
    workers = [int(pid) for pid in file.read_text().split()]
    assert len(workers) == 2
    assert all(is_alive(pid) for pid in workers)
    process.send(signal.SIGKILL)
    assert process.wait().code == -signal.SIGKILL
    deadline = time.monotonic() + 2
    while any(is_alive(pid) for pid in workers):
        assert time.monotonic() < deadline, "still there after 2 s"
        time.sleep(0.01)


def test_what_an_earlier_end_left_does_not_spoil_a_loss(tmp_path):
    makers = [
        partial(ShowingWorse, index=0, lengths=(2,), endings=("terminated",)),
        partial(UnrulyEnv, "step", "exit", 5, tmp_path / "done", index=1, lengths=(9,)),
    ]
    with ProcessEngine(Blueprint(makers, SEED), rollout_of(workers=1)) as engine:
        policy = ActorCritic(engine.obs_spec, engine.action_spec, PolicyConfig(), NormalizeConfig())
        rollout = StepwiseCollector(engine, policy, 8, SEED).collect(policy)
        assert rollout.stats.worker_restarts == 1


def test_a_checkpoint_never_mixes_two_episodes(tmp_path):
    """Env 3 dies in the last step of group 1, after group 0 of the same worker has been heard of."""
    makers: list[Any] = [partial(SavingEnv, index=index, lengths=(99,)) for index in range(3)]
    makers.append(partial(UnrulySavingEnv, "step", "exit", 7, tmp_path / "done", index=3, lengths=(99,)))
    with ProcessEngine(Blueprint(makers, SEED), rollout_of(workers=1, groups=2)) as engine:
        policy = ActorCritic(engine.obs_spec, engine.action_spec, PolicyConfig(), NormalizeConfig())
        collector = StepwiseCollector(engine, policy, 8, SEED)
        collector.collect(policy)
        assert engine.restarts == 1
        assert collector.rows.state()["envs"] is None, "rows 0 and 1 still show the old episode"
        collector.collect(policy)
        assert collector.rows.state()["envs"] is not None


def test_what_an_env_starts_hears_signals_as_usual(tmp_path):
    engine = ProcessEngine(Blueprint([partial(ParentEnv, tmp_path / "pid")], SEED), rollout_of(workers=1))
    child = int((tmp_path / "pid").read_text())
    assert is_alive(child)
    engine.close()
    assert not is_alive(child)


ODD = {
    "exit": (partial(sys.exit, 3), r"env 0 \(seed \d+\) raised an exception in step: SystemExit: 3"),
    "deaf": (close_everything_and_stay, "worker 0 closed its connection in step of env 0"),
    "child": (leave_a_child_and_die, "worker 0 was killed by SIGSEGV in step of env 0"),
    "signal": (
        partial(signal.raise_signal, signal.SIGRTMIN + 6),
        r"worker 0 was killed by signal \d+ in step of env 0",
    ),
    "wordless": (
        raise_wordless,
        r"env 0 \(seed \d+\) raised an exception in step: Wordless: \(its message cannot be read\)",
    ),
    "wordy": (raise_many_lines, r"env 0 \(seed \d+\) raised an exception in step: ValueError: first; no restarts"),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_endings_have_one_line_that_names_the_env(what, monkeypatch):
    if what == "deaf":
        end_at_once(monkeypatch)
    do, message = ODD[what]
    config = rollout_of(workers=1, max_restarts=0, step_timeout_s=30)
    with ProcessEngine(Blueprint([partial(OddEnv, do)], SEED), config) as engine:
        slot = opened(engine)
        step(engine, slot)
        step(engine, slot)
        with pytest.raises(EnvError, match=message) as caught:
            step(engine, slot)
        assert "\n" not in str(caught.value)


def test_restoring_slow_envs_is_progress():
    class Slow(SavingEnv):
        def load_state(self, state: Any) -> None:
            time.sleep(0.2)
            super().load_state(state)

    config = rollout_of(workers=1, step_timeout_s=1)
    with ProcessEngine(Blueprint([Slow] * 6, SEED), config) as engine:
        opened(engine)
        engine.load_state(engine.save_state() or {})


def test_a_state_that_cannot_be_kept_is_no_fault_of_a_worker():
    with ProcessEngine(Blueprint([UnkeepableEnv], SEED), rollout_of(workers=1)) as engine:
        opened(engine)
        assert engine.save_state() is not None, "whoever writes it down refuses it"
        assert engine.restarts == 0


def test_too_few_files_is_a_typed_error_that_leaks_none():
    before = len(os.listdir("/proc/self/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before + 3, limits[1]))
    try:
        with pytest.raises(EnvError, match="worker 0 could not be started: Too many open files"):
            ProcessEngine(Blueprint([CounterEnv], SEED), rollout_of(workers=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_worker_finds_the_modules_that_its_parent_finds(tmp_path):
    (tmp_path / "random.py").write_text("raise RuntimeError('the wrong one')")
    (tmp_path / "scripts").mkdir()
    script = tmp_path / "scripts" / "train.py"
    script.write_text(
        "from surefoot import PPO\n"
        "PPO('CartPole-v1', engine='processes', workers=1, num_envs=2, num_steps=8, batch_size=16).close()\n"
    )
    result = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_closing_an_agent_whose_workers_died(tmp_path):
    before = children(os.getpid())
    agent = PPO(SavingEnv, engine="processes", workers=1, num_envs=2, num_steps=8, batch_size=16, max_restarts=0)
    agent.learn(16)
    for pid in children(os.getpid()) - before:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EnvError, match="SIGKILL"):
        agent.close()
    agent.close()
    assert children(os.getpid()) == before
