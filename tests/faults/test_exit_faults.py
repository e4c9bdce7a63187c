"""Code that Surefoot calls exits the process or raises anything: an error that names it, and the run is saved first."""

import builtins
import json
import shutil
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot import Hook, PartSettings, Term, TermLoss
from surefoot.api import PPO
from surefoot.data.records import IterationReport
from surefoot.envs.adapters.pettingzoo_parallel import PettingZooEnvs
from surefoot.envs.protocol import slot_for
from surefoot.errors import EnvError, HookError, PartError, SinkError
from surefoot.learning.terms import Minibatch
from surefoot.telemetry.sinks import FileSink
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.odd_envs import Exiting
from tests.cli.processes import surefoot
from tests.cli.runs import TINY, column, newest, saved_steps
from tests.envs.teams import TeamEnv
from tests.training.states import assert_same

ENVS = "tests.cli.odd_envs"
SMALL: dict[str, Any] = {
    **{"num_envs": 2, "num_steps": 16, "batch_size": 16, "hidden": 4, "eval_episodes": 0, "tensorboard": False},
    **{"engine": "local"},
}
"""Iterations of 32 steps."""
RAISED = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")


def exiting(**kwargs: Any) -> tuple[object, ...]:
    return f"{ENVS}:Exiting-v0", *TINY, "--rollout.engine", "local", "--env.kwargs", json.dumps(kwargs)


# Environments.


def test_an_env_that_exits_ends_the_run_with_an_error_after_a_save(tmp_path):
    run = tmp_path / "run"
    message = surefoot("train", *exiting(where="step", at=40), "--run-dir", run, "--steps", 320).refused()
    assert "env 0 (seed " in message
    assert "raised an exception in step: SystemExit: 0; saved at step 64; 'surefoot resume" in message
    assert newest(run)["progress"]["step"] == 64
    assert "Traceback" in (run / "log.txt").read_text()
    message = surefoot("train", *exiting(where="constructor"), "--run-dir", tmp_path / "new").refused()
    assert "env 0 could not be created: SystemExit: 0" in message


@pytest.mark.parametrize("what", RAISED)
@pytest.mark.parametrize("where", ["reset", "step", "save_state", "set_parameters"])
def test_whatever_an_env_raises_is_saved_first_and_names_it(tmp_path, where, what):
    class Blow(Hook):
        def before_rollout(self) -> None:
            self.run.envs.set_parameters({"wind": float(self.run.progress.step)})

    at = {"reset": 4, "step": 40, "save_state": 4, "set_parameters": 2}[where]
    agent = PPO(partial(Exiting, where, what, at), **SMALL, checkpoint_every=32 if where == "save_state" else 10_000)
    message = rf"^env \d \(seed \d+\) raised an exception in {where}: {what}(: 0)?; saved at step {{}}; 'surefoot"
    with pytest.raises(EnvError) as caught:
        agent.learn(3200, run_dir=tmp_path, hooks=[Blow()])
    step = agent._started().progress.step
    assert caught.match(message.format(step))
    assert step > 0
    assert saved_steps(tmp_path)[0] == step
    assert newest(tmp_path)["collector"]["envs"] is None or where == "set_parameters"


def test_vector_and_parallel_envs_too():
    class Team(TeamEnv):
        def step(self, actions: Any) -> Any:
            sys.exit()

        def close(self) -> None:
            sys.exit()

    vector = SyncVectorEnv([partial(Exiting, "step")] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(EnvError, match="the vector env raised an exception in step: SystemExit: 0"):
        PPO(vector, **{**SMALL, "num_envs": 2}).learn(32)
    envs = PettingZooEnvs([Team], 0)
    slot = slot_for(envs)
    envs.reset(slot)
    with pytest.raises(EnvError, match=r"env 0 \(seed \d+\) raised an exception in step: SystemExit"):
        envs.step(np.zeros(envs.num_rows, dtype=np.int64), slot)
    envs.close()


def test_evaluation_is_no_way_out(tmp_path, caplog):
    """The training envs are made first, so the envs of the last evaluation are those that exit."""
    made = []

    def make() -> Exiting:
        made.append(1)
        return Exiting("step" if len(made) > 2 else "")

    agent = PPO(make, **SMALL | {"eval_episodes": 1})
    agent.learn(64, run_dir=tmp_path)
    assert "evaluation failed: env 0 (seed " in caplog.text
    assert saved_steps(tmp_path) == [64]
    with pytest.raises(EnvError, match="raised an exception in step: SystemExit"):
        agent.evaluate(1)


def test_a_real_ctrl_c_outside_a_run_is_no_error_of_the_env():
    class Slow(Exiting):
        def step(self, action: Any) -> Any:
            time.sleep(0.01)
            return super().step(action)

    agent = PPO(partial(Slow, ""), **SMALL)
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        agent.evaluate(1000)


# An env whose close() raises: training is saved before anything is closed.


def test_envs_that_cannot_be_closed_cost_warnings(tmp_path):
    run = tmp_path / "run"
    arguments = ("--steps", 64, "--train.eval_episodes", 1, "--train.eval_every", 32)
    finished = surefoot("train", *exiting(where="close", what="RuntimeError"), "--run-dir", run, *arguments)
    finished.succeeded()
    assert saved_steps(run) == [64]
    for shown in (finished.err, (run / "log.txt").read_text()):
        # Two evaluations with one env each, then two training envs.
        assert shown.count("raised an exception in close: RuntimeError: 0") == 4
    assert finished.err.count("WARNING: env 1 (seed ") == 1
    assert "trained 64 steps" in finished.out


def test_the_end_is_saved_before_the_last_evaluation(tmp_path):
    class Look(Hook):
        def end(self) -> None:
            raise ValueError("no end")

    found = []

    class Watched(Exiting):
        def __init__(self) -> None:
            super().__init__("")
            found.append(saved_steps(tmp_path))

    agent = PPO(Watched, **SMALL | {"eval_episodes": 1})
    with pytest.raises(HookError, match="raised an exception in end: ValueError: no end; saved at step 64"):
        agent.learn(64, run_dir=tmp_path, hooks=[Look()])
    assert found == [[], [], [64]]


# Errors in the middle of an update.


class Failing(Term):
    """Raises in a minibatch of an update."""

    class Settings(PartSettings):
        error: str = "ValueError"

    def __init__(self, settings: Settings, name: str, ppo: Any) -> None:
        super().__init__(settings, name, ppo)
        self._error, self.calls, self.is_armed = settings.error, 0, True

    def loss(self, minibatch: Minibatch) -> TermLoss:
        self.calls += 1
        if self.calls == 11 and self.is_armed:
            raise getattr(builtins, self._error)("in the middle")
        return TermLoss(0.0 * minibatch.output.value.mean())

    def state(self) -> dict[str, Any]:
        return {"calls": self.calls}

    def load_state(self, state: dict[str, Any]) -> None:
        self.calls, self.is_armed = state["calls"], False


def with_term(error: str) -> PPO:
    """Four minibatches per iteration: the eleventh is in the third update."""
    terms = {"failing": {"kind": f"{__name__}:Failing", "error": error}}
    return PPO("CartPole-v1", **SMALL | {"engine": "native"}, epochs=2, **{"normalize.reward": True}, terms=terms)


class StopAt64(Hook):
    def after_iteration(self, report: IterationReport) -> None:
        if report.progress.step == 64:
            self.run.stop("enough")


LEARNED = ("policy", "gradient", "scorer", "schedules", "progress", "objective")


@pytest.mark.parametrize("error", ["ValueError", "MemoryError", "SystemExit"])
def test_a_half_done_update_is_never_saved(tmp_path, error):
    run, whole = tmp_path / "run", tmp_path / "whole"
    agent = with_term(error)
    message = rf"^term 'failing' raised an exception in loss: {error}: in the middle; saved at step 64; 'surefoot"
    with pytest.raises(PartError, match=message):
        agent.learn(320, run_dir=run)
    with_term(error).learn(320, run_dir=whole, hooks=[StopAt64()])  # the same schedules
    saved, expected = newest(run), newest(whole)
    for part in LEARNED:
        assert_same(saved[part], expected[part], part)
    assert saved["collector"]["envs"] is None, "its steps were not learned from"
    agent.learn(64)
    assert agent._started().progress.step == 128, "the agent goes on from the same state"


def test_an_untyped_error_keeps_its_type_and_says_what_was_saved(tmp_path):
    agent = with_term("ValueError")
    learner = agent._started().learner
    samples = learner.gradient.step
    calls = []

    def step(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 7:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return samples(*arguments)

    learner.gradient.step = step
    with pytest.raises(RuntimeError, match="can't allocate") as caught:
        agent.learn(320, run_dir=tmp_path)
    assert caught.value.__notes__ == [f"saved at step 32; 'surefoot resume {tmp_path}' continues the run"]
    assert saved_steps(tmp_path) == [32]


# Hooks and sinks.


class Exit(Hook):
    """Exits in one method."""

    def __init__(self, method: str) -> None:
        super().__init__()
        setattr(self, method, lambda *arguments: sys.exit(0) if self.run.progress.step >= 32 else {})


@pytest.mark.parametrize("method", ["before_rollout", "after_rollout", "after_iteration", "end", "state"])
def test_a_hook_that_exits(tmp_path, method):
    agent = PPO("CartPole-v1", **SMALL)
    hook = Exit(method)
    hook.run = agent._begun()
    with pytest.raises(HookError, match=rf"hook 'Exit' raised an exception in {method}: SystemExit: 0"):
        agent.learn(32 if method in ("end", "state") else 320, run_dir=tmp_path, hooks=[hook])
    assert saved_steps(tmp_path) == [32]
    PPO.load(RunDirectory(tmp_path).saved()[0]).learn(32)


def test_a_hook_whose_state_cannot_be_saved_any_more_loses_only_that(tmp_path):
    class Odd(Hook):
        count = 0

        def after_iteration(self, report: IterationReport) -> None:
            self.count += 1

        def state(self) -> dict[str, Any]:
            return {"count": self.count if self.count < 2 else object()}

    agent = PPO("CartPole-v1", **SMALL, checkpoint_every=32)
    with pytest.raises(Exception, match=r"hooks\.Odd\.count is .*object.*saved at step 64"):
        agent.learn(320, run_dir=tmp_path, hooks=[Odd()])
    assert newest(tmp_path)["hooks"] == {"Odd": {"count": 0}}


class ExitingSink(FileSink):
    """Exits in one method."""

    class Settings(PartSettings):
        where: str = "write"

    def __init__(self, folder: Path, config: Any, settings: Any = None) -> None:
        self._where = settings.where
        self._may_exit("open")

    def write(self, step: int, metrics: Any) -> None:
        self._may_exit("write")

    def close(self) -> None:
        self._may_exit("close")

    def _may_exit(self, where: str) -> None:
        if where == self._where:
            sys.exit(0)


def test_sinks_that_exit(tmp_path, caplog):
    for where in ("write", "close"):
        sinks = {"mine": {"kind": f"{__name__}:ExitingSink", "where": where}}
        PPO("CartPole-v1", **SMALL, sinks=sinks).learn(64, run_dir=tmp_path / where)
        assert saved_steps(tmp_path / where) == [64]
    assert "ExitingSink failed and was disabled: SystemExit: 0" in caplog.text
    assert "ExitingSink failed to close: SystemExit: 0" in caplog.text
    sinks = {"mine": {"kind": f"{__name__}:ExitingSink", "where": "open"}}
    with pytest.raises(SinkError, match=r"log\.sinks\.mine could not be opened: SystemExit: 0; fix it or remove it"):
        PPO("CartPole-v1", **SMALL, sinks=sinks).learn(64, run_dir=tmp_path / "open")


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_metrics_that_cannot_be_written_are_refused_before_step_0(tmp_path, kind):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    run = tmp_path / "run"
    run.mkdir()
    if kind == "folder":
        (run / "metrics.jsonl").mkdir()
    else:
        (run / "metrics.jsonl").symlink_to(precious)
    cause = "Is a directory" if kind == "folder" else "it is a symbolic link"
    with pytest.raises(SinkError, match=rf"JsonlSink could not be opened: .*{cause}: .*metrics\.jsonl'; move the file"):
        PPO("CartPole-v1", **SMALL).learn(64, run_dir=run)
    assert precious.read_text() == "precious"
    assert saved_steps(run) == []


def test_a_directory_deleted_in_the_middle_is_created_again(tmp_path):
    class Delete(Hook):
        def after_iteration(self, report: IterationReport) -> None:
            if report.progress.iteration == 2:
                shutil.rmtree(tmp_path / "run")

    PPO("CartPole-v1", **SMALL).learn(128, run_dir=tmp_path / "run", hooks=[Delete()])
    assert read_checkpoint(RunDirectory(tmp_path / "run").saved()[0])["progress"]["step"] == 128
    assert RunDirectory(tmp_path / "run").holds_run
    assert column(tmp_path / "run", "step") == [64, 96, 128]
    assert "was deleted and is created again" in (tmp_path / "run" / "log.txt").read_text()
