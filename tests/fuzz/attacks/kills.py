"""Runs that are killed at random moments and resumed until they are done: end and metrics of an undisturbed run."""

import json
import os
import random
import select
import signal
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from surefoot.cli.main import main
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.runs import QUIET
from tests.training.states import assert_same

TINY = (
    *("--rollout.num_envs", "4", "--rollout.num_steps", "16", "--ppo.batch_size", "32", "--policy.hidden", "8"),
    *("--train.checkpoint_every", "64", "--train.eval_episodes", "2", "--train.eval_every", "512", *QUIET),
)
STEPS = "2048"
TASKS = (
    ("CartPole-v1",),
    ("CartPoleNoVel-v1", "--policy.memory.hidden_size", "4"),
    ("Pendulum-v1", "--normalize.returns", "true", "--log.log_every", "3"),
)
SIGNALS = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}


@dataclass(frozen=True)
class Whole:
    """An undisturbed run."""

    state: dict[str, Any]
    lines: list[tuple[int, bool]]
    seconds: float


def prepare(folder: Path) -> list[Whole]:
    """Every task, trained without interruption."""
    return [_whole(folder / str(number), task) for number, task in enumerate(TASKS)]


def case(pick: random.Random, material: list[Whole], folder: Path) -> None:
    """Up to three interruptions."""
    number = pick.randrange(len(TASKS))
    whole, run = material[number], folder / "run"
    for _ in range(3):
        if _interrupted(pick, run, _command(run, TASKS[number]), whole.seconds):
            break
    else:
        assert _is_done(_Command(_command(run, TASKS[number])).wait(), run)
    assert_same(_final(run), whole.state)
    assert _lines(run) == whole.lines
    earlier = RunDirectory(run).saved()[1:]
    if earlier and pick.random() < 0.3:
        step, other = int(pick.choice(earlier).stem.removeprefix("step_")), folder / "other"
        again = ["resume", str(run), "--checkpoint", str(step), "--run-dir", str(other)]
        assert _is_done(_Command(again).wait(), other)
        assert_same(_final(other), whole.state)
        assert _lines(other) == whole.lines


def _command(run: Path, task: tuple[str, ...]) -> list[str]:
    if (run / "config.yaml").exists():
        return ["resume", str(run)]
    return ["train", *task, "--run-dir", str(run), "--steps", STEPS, *TINY]


def _interrupted(pick: random.Random, run: Path, command: list[str], seconds: float) -> bool:
    """Start, send a signal after a random time unless it is done before, and wait; whether it is done."""
    process, chosen = _Command(command), pick.choice(list(SIGNALS))
    try:
        code = process.wait(pick.uniform(0.2, 1.1) * seconds)
    except TimeoutError:
        os.kill(process.pid, chosen)
        code = process.wait()
        if code in (SIGNALS[chosen], -chosen):  # before its handlers are installed, Python ends by the signal itself
            return False
    assert _is_done(code, run), code
    return True


def _is_done(code: int, run: Path) -> bool:
    """A run that is killed after its last save is done too: nothing is left to resume."""
    return code == 0 or (code == 2 and _final(run)["progress"]["step"] == int(STEPS))


class _Command:
    """The command line in a fork of this process, which has imported everything and run nothing."""

    def __init__(self, arguments: list[str]) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            _run(arguments)
        self._end = os.pidfd_open(self.pid)

    def wait(self, patience_s: float | None = None) -> int:
        """The exit code, negative for a signal; a TimeoutError if it still runs."""
        if not select.select([self._end], [], [], patience_s)[0]:
            raise TimeoutError
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _run(arguments: list[str]) -> NoReturn:
    """Ctrl-C interrupts this at any place, also at its last one."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(main(arguments))
    except KeyboardInterrupt:
        os._exit(SIGNALS[signal.SIGINT])
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _whole(run: Path, task: tuple[str, ...]) -> Whole:
    began = time.monotonic()
    assert _Command(_command(run, task)).wait() == 0
    return Whole(_final(run), _lines(run), time.monotonic() - began)


def _lines(run: Path) -> list[tuple[int, bool]]:
    """The step of every line of the metrics, and whether it has an evaluation."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [(line["step"], "eval/mean_reward" in line) for line in lines]


def _final(run: Path) -> dict[str, Any]:
    return read_checkpoint(RunDirectory(run).saved()[0])
