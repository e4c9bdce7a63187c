"""Hooks: when they are called, what they may do to a run, what of them is saved, and what happens if one fails."""

import json
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import PPO, Hook
from surefoot.data.records import IterationReport, Rollout
from surefoot.errors import ConfigError, HookError, NonFiniteError, PolicyError
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.cli.processes import surefoot

ITERATION = 20


def small(**settings: Any) -> PPO:
    """Iterations of 20 steps."""
    common = {"num_envs": 2, "num_steps": 10, "batch_size": 10, "epochs": 1, "hidden": 4, "eval_episodes": 0}
    return PPO("CartPole-v1", **{**common, **settings})


class Notes(Hook):
    """Writes down every call."""

    def __init__(self, name: str, notes: list[Any]) -> None:
        super().__init__()
        self.name, self.notes = name, notes

    def note(self, method: str) -> None:
        self.notes.append((self.name, method, self.run.progress.step))

    def begin(self) -> None:
        self.note("begin")

    def before_rollout(self) -> None:
        self.note("before_rollout")

    def after_rollout(self, rollout: Rollout) -> None:
        assert rollout.num_steps == ITERATION
        self.note("after_rollout")

    def after_iteration(self, report: IterationReport) -> None:
        assert report.progress.step == self.run.progress.step
        self.note("after_iteration")

    def end(self) -> None:
        self.note("end")


def records(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def saved_steps(folder: Path) -> list[int]:
    return sorted(int(path.stem.removeprefix("step_")) for path in RunDirectory(folder).saved())


def test_the_order_of_calls():
    notes: list[Any] = []
    small().learn(40, hooks=[Notes("a", notes), Notes("b", notes)])
    calls = [("begin", 0)]
    for step in (0, 20):
        calls += [("before_rollout", step), ("after_rollout", step), ("after_iteration", step + 20)]
    calls += [("end", 40)]
    assert notes == [(name, method, step) for method, step in calls for name in ("a", "b")]


def test_configured_hooks_come_before_given_ones_and_see_the_run():
    agent = small(hooks={"enough": {"kind": "stop_at_return", "value": 1e9}})
    seen: list[Any] = []

    class Look(Hook):
        def begin(self) -> None:
            seen.append((self.run.policy, self.run.config, self.run.envs.num_rows, self.run.is_ending))
            seen.append(list(self.run.hooks.named))

        def after_iteration(self, report: IterationReport) -> None:
            seen.append(self.run.is_ending)

    agent.learn(40, hooks=[Look()])
    (policy, config, rows, is_ending), names, *ending = seen
    assert policy is agent.policy
    assert config == agent.config
    assert (rows, is_ending) == (2, False)
    assert names == ["enough", "Look"]
    assert ending == [False, True]


class StopAt(Hook):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def after_iteration(self, report: IterationReport) -> None:
        if report.progress.step >= self.step:
            self.run.stop("it is enough")
            self.run.stop("the first reason counts")


def test_a_hook_may_stop_a_run_which_is_then_evaluated_and_saved(tmp_path):
    agent = small(eval_episodes=2, **{"log.tensorboard": False}).learn(1000, run_dir=tmp_path, hooks=[StopAt(40)])
    assert agent._started().progress.step == 40
    assert saved_steps(tmp_path) == [40]
    assert (tmp_path / "best.safetensors").exists()
    assert "eval/mean_reward" in records(tmp_path)[-1]
    log = (tmp_path / "log.txt").read_text()
    assert "stopped at step 40: it is enough" in log
    assert "the first reason counts" not in log


def test_a_stopped_agent_can_learn_again():
    agent = small()
    agent.learn(1000, hooks=[StopAt(20)])
    agent.learn(40)
    assert agent._started().progress.step == 60


def test_stop_at_return_waits_for_iterations_in_a_row():
    agent = small(hooks={"stop_at_return": {"value": -1.0, "iterations": 3}}, num_steps=50, batch_size=50)
    agent.learn(2000)
    assert agent._started().progress.iteration == 3


@pytest.mark.parametrize("learner", ["native", "torch"])
def test_fade_noise_limits_the_std(learner):
    stds: list[float] = []

    class Look(Hook):
        def after_rollout(self, rollout: Rollout) -> None:
            stds.append(self.run.policy.head.mean_std(lambda: None).item())

    fade = {"start": 0.8, "end": 0.05, "until": 0.5}
    sizes = {"num_envs": 2, "num_steps": 10, "batch_size": 20, "hidden": 4}
    PPO("Pendulum-v1", **sizes, learner=learner, lr=1e-5, hooks={"fade_noise": fade}).learn(80, hooks=[Look()])
    assert stds == pytest.approx([0.8, 0.2, 0.05, 0.05], rel=1e-2)


@pytest.mark.parametrize(
    ("env", "settings"), [("CartPole-v1", {}), ("Pendulum-v1", {"distribution": {"kind": "gaussian", "std": "state"}})]
)
def test_fade_noise_needs_a_std_to_limit(env, settings):
    agent = PPO(env, num_envs=2, num_steps=10, batch_size=20, hidden=4, hooks={"fade_noise": {}}, **settings)
    with pytest.raises(PolicyError, match="no standard deviation that can be limited; use gaussian or tanh_gaussian"):
        agent.learn(20)


class SaveAt(Hook):
    def __init__(self, *steps: int) -> None:
        super().__init__()
        self.steps = steps

    def after_iteration(self, report: IterationReport) -> None:
        if report.progress.step in self.steps:
            self.run.save()


def test_a_hook_may_ask_for_a_checkpoint(tmp_path):
    settings = {"checkpoint_every": 1000, "keep_checkpoints": 9, "log.tensorboard": False}
    small(**settings).learn(100, run_dir=tmp_path, hooks=[SaveAt(20, 60)])
    assert saved_steps(tmp_path) == [20, 60, 100]


def test_without_a_run_directory_there_is_nothing_to_save():
    assert small().learn(40, hooks=[SaveAt(20)])._started().progress.step == 40


def test_added_metrics_reach_the_metrics_file(tmp_path):
    class Measure(Hook):
        def after_iteration(self, report: IterationReport) -> None:
            report.metrics["mine/iteration"] = 10.0 * report.progress.iteration

    small(**{"log.tensorboard": False}).learn(60, run_dir=tmp_path, hooks=[Measure()])
    assert [record["mine/iteration"] for record in records(tmp_path)] == [10.0, 20.0, 30.0]


def test_a_plain_function_is_a_hook(tmp_path):
    steps: list[int] = []

    def remember(report: IterationReport) -> None:
        steps.append(report.progress.step)
        report.metrics["mine/count"] = float(len(steps))

    small(**{"log.tensorboard": False}).learn(40, run_dir=tmp_path, hooks=[remember, lambda report: None])
    assert steps == [20, 40]
    assert [record["mine/count"] for record in records(tmp_path)] == [1.0, 2.0]


class Count(Hook):
    """Counts iterations, also those of earlier calls of learn and of earlier processes."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.began_with = 0, -1

    def begin(self) -> None:
        self.began_with = self.count

    def after_iteration(self, report: IterationReport) -> None:
        self.count += 1

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


def test_state_is_in_the_checkpoint_under_the_name_and_comes_back_before_begin(tmp_path):
    agent = small()
    agent.learn(40, hooks=[Count(), Count()])
    agent.save(tmp_path / "agent.safetensors")
    assert read_checkpoint(tmp_path / "agent.safetensors")["hooks"] == {"Count": {"count": 2}, "Count-2": {"count": 2}}
    hook = Count()
    PPO.load(tmp_path / "agent.safetensors").learn(60, hooks=[hook])
    assert (hook.began_with, hook.count) == (2, 5)


def test_the_state_of_a_hook_that_is_not_attached_is_kept(tmp_path):
    agent = small()
    agent.learn(40, hooks=[Count()])
    agent.learn(40)
    agent.save(tmp_path / "agent.safetensors")
    loaded = PPO.load(tmp_path / "agent.safetensors").learn(20)
    hook = Count()
    loaded.learn(20, hooks=[hook])
    assert (hook.began_with, hook.count) == (2, 3)


METHODS = ("begin", "before_rollout", "after_rollout", "after_iteration", "end")


def failing(method: str, at: int, error: Exception) -> Hook:
    class Failing(Hook):
        pass

    def fail(self: Hook, *arguments: Any) -> None:
        if self.run.progress.step >= at:
            raise error

    setattr(Failing, method, fail)
    return Failing()


@pytest.mark.parametrize("method", METHODS)
def test_a_hook_that_raises_is_named_and_the_run_is_saved_first(method, tmp_path):
    at = 0 if method == "begin" else 40
    agent = small(**{"log.tensorboard": False})
    with pytest.raises(HookError) as caught:
        agent.learn(40 if method == "end" else 1000, run_dir=tmp_path, hooks=[failing(method, at, KeyError("x"))])
    step = agent._started().progress.step
    assert str(caught.value).startswith(
        f"hook 'Failing' raised an exception in {method}: KeyError: 'x'; saved at step {step}"
    )
    assert isinstance(caught.value.__cause__, KeyError)
    assert saved_steps(tmp_path) == [step]
    assert step == at
    PPO.load(RunDirectory(tmp_path).saved()[0]).learn(20)


def test_without_a_run_directory_the_error_is_the_same():
    with pytest.raises(HookError, match=r"^hook 'Failing' raised an exception in after_rollout: ValueError: no$"):
        small().learn(1000, hooks=[failing("after_rollout", 20, ValueError("no"))])


def test_our_own_errors_pass_as_they_are():
    with pytest.raises(NonFiniteError, match=r"^as it is$"):
        small().learn(1000, hooks=[failing("after_iteration", 20, NonFiniteError("as it is"))])


MODULE = """
    from surefoot import Hook, PartSettings


    class Ladder(Hook):
        '''Counts iterations up to a limit, over processes.'''

        class Settings(PartSettings):
            limit: int = 3

        def __init__(self, settings):
            super().__init__(settings)
            self.limit, self.count = settings.limit, 0

        def after_iteration(self, report):
            self.count += 1
            report.metrics["ladder/count"] = float(self.count)
            if self.count == self.limit:
                self.run.stop("top of the ladder")

        def state(self):
            return {"count": self.count}

        def load_state(self, state):
            self.count = state["count"]


    class Broken(Hook):
        def after_rollout(self, rollout):
            if self.run.progress.iteration == 1:
                raise ZeroDivisionError("of its own making")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current one, from which nothing has been imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_hooks.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "mine.yaml").write_text(
        textwrap.dedent(
            """
            env: {id: CartPole-v1}
            rollout: {num_envs: 2, num_steps: 16}
            ppo: {batch_size: 16, epochs: 1}
            policy: {hidden: [4]}
            train: {steps: 96, eval_episodes: 2}
            log: {console: plain, tensorboard: false}
            hooks:
              ladder: {kind: "my_hooks:Ladder", limit: 5}
            """
        )
    )
    return tmp_path


def test_state_survives_a_new_process(folder):
    first = surefoot("train", "--config", "mine.yaml", "--run-dir", "run")
    assert first.code == 0, first.err
    run = folder / "run"
    assert [record["ladder/count"] for record in records(run)] == [1, 2, 3]
    assert read_checkpoint(RunDirectory(run).saved()[0])["hooks"] == {"ladder": {"count": 3}}
    second = surefoot("resume", "run", "--steps", 3200)
    assert second.code == 0, second.err
    assert [record["ladder/count"] for record in records(run)] == [1, 2, 3, 4, 5]
    assert saved_steps(run)[-1] == 160, "the hook stopped it"
    assert "stopped at step 160: top of the ladder" in (run / "log.txt").read_text()
    assert "eval/mean_reward" in records(run)[-1]
    assert "evaluated" in second.out


def test_hooks_can_be_named_and_changed_on_the_command_line(folder):
    done = surefoot("train", "--config", "mine.yaml", "--run-dir", "run", "--hooks.ladder.limit", 2)
    assert done.code == 0, done.err
    assert saved_steps(folder / "run") == [64]
    done = surefoot("train", "--config", "mine.yaml", "--run-dir", "other", "--hooks.ladder", "null")
    assert done.code == 0, done.err
    assert saved_steps(folder / "other") == [96]
    assert "ladder/count" not in records(folder / "other")[-1]


def test_a_hook_that_fails_in_a_process_is_one_line_and_a_saved_run(folder):
    flag = ("--hooks.broken", "my_hooks:Broken")
    failed = surefoot("train", "--config", "mine.yaml", "--run-dir", "run", *flag)
    assert failed.code == 2, (failed.code, failed.err)
    assert "Traceback" not in failed.err
    assert (
        "error: hook 'broken' raised an exception in after_rollout: ZeroDivisionError: of its own making" in failed.err
    )
    assert "saved at step 32; 'surefoot resume run' continues the run" in failed.err
    assert saved_steps(folder / "run") == [32]
    resumed = surefoot("resume", "run", "--hooks.broken", "null")
    assert resumed.code == 0, resumed.err
    assert saved_steps(folder / "run")[-1] == 96


def test_an_unknown_setting_of_a_hook_is_refused_before_anything_is_written(folder):
    refused = surefoot("train", "--config", "mine.yaml", "--run-dir", "run", "--hooks.ladder.limt", 2)
    assert refused.code == 2
    assert "hooks.ladder.limt: unknown key" in refused.err
    assert not (folder / "run").exists()


def test_functions_end_a_run():
    def by_both(run, report):
        return False if run.progress.iteration == 2 else None

    cases = [
        (lambda report: report.progress.iteration < 2, "the hook <lambda> returned False"),
        (lambda report: np.bool_(report.progress.iteration < 2), "the hook <lambda> returned False"),
        (by_both, "the hook by_both returned False"),
        (lambda report, most=2: "long enough" if report.progress.iteration == most else "", "long enough"),
    ]
    for function, reason in cases:
        reasons: list[str] = []
        watch = partial(lambda seen, run, report: seen.append(run.stop_reason), reasons)
        agent = small().learn(1000, hooks=[function, watch])
        assert agent._started().progress.iteration == 2
        assert reasons == ["", reason]


@pytest.mark.parametrize("function", [lambda: None, lambda run, report, more: None])
def test_functions_of_other_arguments_are_refused(function):
    with pytest.raises(
        ConfigError, match=r"has \d parameters; define it as function\(report\) or function\(run, report\)"
    ):
        small().learn(20, hooks=[function])


def test_a_class_is_not_a_hook():
    with pytest.raises(ConfigError, match=r"^hooks: pass an object, Hook\(\), not the class Hook$"):
        small().learn(20, hooks=[Hook])


def test_a_config_can_name_a_function(tmp_path, monkeypatch):
    (tmp_path / "my_functions.py").write_text(
        "def enough(run, report):\n    return run.progress.iteration < 2\nlimit = 3\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = small(hooks={"mine": "my_functions:enough"})
    assert agent.learn(1000, run_dir=tmp_path / "run")._started().progress.iteration == 2
    assert "the hook enough returned False" in (tmp_path / "run" / "log.txt").read_text()
    with pytest.raises(ConfigError, match=r"'my_functions:limit' must be a subclass of surefoot\.Hook or a func"):
        small(hooks={"mine": "my_functions:limit"})
    with pytest.raises(ConfigError, match="unknown key"):
        small(hooks={"mine": {"kind": "my_functions:enough", "limit": 3}})
