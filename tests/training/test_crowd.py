"""On a busy machine, updates run on one thread, and on all again once it is idle."""

import multiprocessing
import time
from collections.abc import Iterator

import pytest

from surefoot import PPO
from surefoot.learning.execution import Crowd
from surefoot.machine.cores import available_cores


class Scheduler:
    """Says how long a thread has waited: a share of the time that has passed while the machine is busy."""

    def __init__(self) -> None:
        self.waited, self.share = 0.0, 0.0

    def __call__(self) -> float:
        return self.waited


def update(crowd: Crowd, scheduler: Scheduler, most: int = 4) -> int:
    """The threads of an update of 10 ms."""
    with crowd.threads(most) as count:
        time.sleep(0.01)
        scheduler.waited += 0.011 * scheduler.share
    return count


def test_one_thread_while_the_machine_is_busy() -> None:
    scheduler = Scheduler()
    crowd = Crowd(waited=scheduler)
    assert [update(crowd, scheduler) for _ in range(3)] == [4] * 3
    scheduler.share = 0.9
    assert update(crowd, scheduler) == 4
    scheduler.share = 0.0
    assert [update(crowd, scheduler) for _ in range(3)] == [4] * 3, "a single one may be chance"
    scheduler.share = 0.9
    assert [update(crowd, scheduler) for _ in range(3)] == [4] * 3, "noticed by the end of the third one"
    assert [update(crowd, scheduler) for _ in range(20)] == [1] * 20
    assert update(crowd, scheduler) == 4, "tried again"
    scheduler.share = 0.0
    assert [update(crowd, scheduler) for _ in range(40)] == [1] * 40, "twice as long as before"
    assert [update(crowd, scheduler) for _ in range(3)] == [4] * 3


def test_a_system_that_does_not_say() -> None:
    crowd = Crowd(waited=lambda: None)
    for _ in range(3):
        with crowd.threads(2) as count:
            assert count == 2


def burn() -> None:
    while True:
        pass


@pytest.fixture
def busy_machine() -> Iterator[None]:
    context = multiprocessing.get_context("fork")
    burners = [context.Process(target=burn, daemon=True) for _ in range(2 * available_cores())]
    for burner in burners:
        burner.start()
    yield
    for burner in burners:
        burner.kill()
        burner.join()


@pytest.mark.skipif(available_cores() < 2, reason="a single core has a single thread")
def test_a_real_run_on_a_busy_machine(busy_machine: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="surefoot")
    agent = PPO("CartPole-v1", num_envs=8, num_steps=64, batch_size=64, epochs=4, threads=2, eval_episodes=0)
    agent.learn(512 * 12)
    assert "learning on one thread until they are done" in caplog.text


@pytest.mark.skipif(available_cores() < 2, reason="a single core has a single thread")
def test_pytorch_keeps_its_threads_on_a_busy_machine(busy_machine: None, caplog: pytest.LogCaptureFixture) -> None:
    """The last bits of its results depend on their number: the run gives advice instead."""
    caplog.set_level("INFO", logger="surefoot")
    sizes = {"num_envs": 4, "num_steps": 16, "batch_size": 64, "epochs": 1, "threads": 2, "eval_episodes": 0}
    agent = PPO("CartPole-v1", policy={"hidden": [512, 512]}, learner="torch", **sizes)
    agent.learn(64 * 5)
    assert agent._started().execution.torch_threads == 2
    advice = [line for line in caplog.messages if "resume it with --train.threads 1" in line]
    assert len(advice) == 1
    assert "PyTorch keeps its 2 threads" in advice[0]
