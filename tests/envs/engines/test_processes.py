"""The processes engine as processes: they park, end when they should, leak nothing, and are told apart from others."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines.processes import ProcessEngine
from surefoot.envs.protocol import new_slot, step_all
from surefoot.errors import ConfigError, EnvError
from surefoot.settings.config import RolloutConfig
from tests.envs.tasks import CounterEnv, factories


def make(makers: list[Any], workers: int = 2, **config: Any) -> ProcessEngine:
    return ProcessEngine(Blueprint(makers, 3), RolloutConfig(**{"engine": "processes", "workers": workers, **config}))


def opened(engine: ProcessEngine) -> Any:
    slot = new_slot(engine.num_rows, engine.obs_spec, engine.mask_size)
    engine.reset(slot)
    return slot


def children(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found |= {int(child) for child in task.read_text().split()}
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class MeetingEnv(CounterEnv):
    """Finishes a step only when everybody who has to be there has come; its reward says in which process it is."""

    def __init__(self, folder: Path, needed: set[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._folder, self._needed = folder, needed

    def step(self, action: Any) -> Any:
        (self._folder / str(self._index)).touch()
        while not all((self._folder / name).exists() for name in self._needed):
            time.sleep(0.001)
        obs, _, terminated, truncated, info = super().step(action)
        return obs, float(os.getpid()), terminated, truncated, info


def test_workers_step_side_by_side_while_the_parent_does_something_else(tmp_path):
    makers = [partial(MeetingEnv, tmp_path, {"0", "1", "parent"}, index=index) for index in range(4)]
    with make(makers, workers=2, groups=2, engine={"kind": "processes", "step_timeout_s": 20}) as engine:
        slot = opened(engine)
        engine.send(0, np.zeros(2, dtype=np.int64))
        engine.send(1, np.zeros(2, dtype=np.int64))
        (tmp_path / "parent").touch()
        engine.receive(0, slot)
        engine.receive(1, slot)
        assert engine.restarts == 0
        first, second = slot.reward.reshape(2, 2).T  # each worker has one env of each group
        assert first[0] == first[1] != second[0] == second[1]


def test_one_worker_a_core_but_no_more_than_there_are_envs():
    before = children(os.getpid())
    with make(factories(9), workers=0):
        assert len(children(os.getpid()) - before) == len(os.sched_getaffinity(0))
    with make(factories(2), workers=5):
        assert len(children(os.getpid()) - before) == 2


def test_workers_that_wait_use_no_time():
    before = children(os.getpid())
    with make(factories(2)) as engine:
        opened(engine)
        workers = children(os.getpid()) - before
        used = [cpu_s(pid) for pid in workers]
        time.sleep(0.5)
        assert [cpu_s(pid) for pid in workers] == used


def test_workers_do_not_import_torch():
    class Revealing(CounterEnv):
        def step(self, action: Any) -> Any:
            obs, _, terminated, truncated, info = super().step(action)
            return obs, float("torch" in sys.modules), terminated, truncated, info

    with make([Revealing]) as engine:  # a class of this very function, too, travels
        slot = opened(engine)
        step_all(engine, np.zeros(1, dtype=np.int64), slot)
        assert slot.reward[0] == 0.0


def test_a_step_sends_one_byte_and_pickles_nothing(monkeypatch):
    with make(factories(2)) as engine:
        slot = opened(engine)
        monkeypatch.setattr("surefoot.envs.engines.worker_process.send_message", None)
        monkeypatch.setattr("surefoot.envs.engines.worker_process.read_message", None)
        step_all(engine, np.zeros(2, dtype=np.int64), slot)
        monkeypatch.undo()


def test_opening_and_closing_again_and_again_leaks_nothing():
    def resources() -> tuple[int, int, int, int]:
        gc.collect()
        maps = Path("/proc/self/maps").read_text()
        shared = len([name for name in os.listdir("/dev/shm") if not name.startswith("sem.")])
        return len(os.listdir("/proc/self/fd")), len(children(os.getpid())), maps.count("memfd:"), shared

    def cycle() -> None:
        with make([CounterEnv], workers=1) as engine:
            step_all(engine, np.zeros(1, dtype=np.int64), opened(engine))

    cycle()
    before = resources()
    for _ in range(12):
        cycle()
    assert resources() == before


def test_an_engine_that_is_forgotten_ends_its_workers():
    before = children(os.getpid())
    engine = make(factories(2))
    workers = children(os.getpid()) - before
    assert len(workers) == 2
    del engine
    gc.collect()
    assert not any(is_alive(pid) for pid in workers)


def test_closing_twice_and_using_a_closed_one():
    engine = make(factories(1))
    slot = opened(engine)
    engine.close()
    engine.close()
    assert engine.save_state() is None
    with pytest.raises(EnvError, match="closed"):
        engine.send(0, np.zeros(1, dtype=np.int64))
    with pytest.raises(EnvError, match="closed"):
        engine.reset(slot)


def test_a_forked_process_is_refused_and_told_to_spawn():
    """Fault 29."""
    with make(factories(1)) as engine:
        slot = opened(engine)
        results = multiprocessing.get_context("fork").SimpleQueue()

        def use() -> None:
            try:
                engine.send(0, np.zeros(1, dtype=np.int64))
            except EnvError as error:
                results.put(str(error))
            engine.close()  # which is not this process's to close

        process = multiprocessing.get_context("fork").Process(target=use)
        process.start()
        process.join(10)
        assert "'spawn'" in results.get()
        step_all(engine, np.zeros(1, dtype=np.int64), slot)
        assert slot.valid[0]


def test_an_engine_made_in_a_thread_outlives_it():
    made: list[ProcessEngine] = []
    thread = threading.Thread(target=lambda: made.append(make(factories(2))))
    thread.start()
    thread.join()
    time.sleep(0.2)
    with made[0] as engine:
        slot = opened(engine)
        step_all(engine, np.zeros(2, dtype=np.int64), slot)
        assert engine.restarts == 0
        assert slot.valid.all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_the_whole_terminal_leave_the_workers_to_their_parent(number):
    before = children(os.getpid())
    with make(factories(2)) as engine:
        slot = opened(engine)
        for pid in children(os.getpid()) - before:
            os.kill(pid, number)
        time.sleep(0.2)
        step_all(engine, np.zeros(2, dtype=np.int64), slot)
        assert engine.restarts == 0


SCRIPT = """
import gymnasium as gym
from surefoot import PPO

class MyEnv(gym.Env):  # in a script, without a main guard
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}
    def step(self, action):
        return self.observation_space.sample(), 1.0, False, True, {}

gym.register("My-v0", MyEnv)
for source in ("My-v0", MyEnv, lambda: MyEnv()):
    agent = PPO(source, engine="processes", workers=2, num_envs=4, num_steps=8, batch_size=32, eval_episodes=2)
    agent.learn(64)
    agent.close()
print("done")
"""


def test_a_plain_script_with_an_env_of_its_own_works(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    result = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.stdout == "done\n", result.stderr


def test_what_cannot_travel_is_refused_with_the_remedy():
    lock = threading.Lock()

    def factory() -> gym.Env[Any, Any]:
        with lock:
            return CounterEnv()

    before = children(os.getpid())
    with pytest.raises(EnvError, match=r"rollout\.engine: local"):
        make([factory])
    assert children(os.getpid()) == before


def test_more_groups_than_a_byte_can_name_are_refused():
    with pytest.raises(ConfigError, match=r"rollout\.groups"):
        make([partial(CounterEnv, index=0)] * 300, groups=300)
