"""A run: a trainer with its hooks, sinks and checkpoints."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from surefoot.compose import Specs, evaluator, filmer
from surefoot.data.records import Progress
from surefoot.data.specs import spec_to_json
from surefoot.envs.make import EnvSource
from surefoot.envs.protocol import VecEnv
from surefoot.errors import PartError, SurefootError
from surefoot.evaluation.evaluation import Evaluation
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.learning.execution import Execution
from surefoot.machine.cores import available_cores
from surefoot.machine.ram import readable
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.output.failures import brief, origin
from surefoot.policies.policy import Policy
from surefoot.rollout.actors import Actors
from surefoot.rollout.footprint import rollout_bytes
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.starting import frozen_policy
from surefoot.storage.saved import Saved, reading
from surefoot.storage.state import load_states, states
from surefoot.telemetry.console import ConsoleMode, build_console
from surefoot.telemetry.records import NO_HISTORY, History, read_history
from surefoot.telemetry.sink_group import SinkGroup
from surefoot.telemetry.sinks import Sink, open_sinks
from surefoot.telemetry.watch import AlertWatch
from surefoot.training.agreement import Agreement, agreed_stop
from surefoot.training.checkpoint import check_savable
from surefoot.training.hook_group import HookGroup
from surefoot.training.hooks import Hook, HookLike, named_hooks
from surefoot.training.other_rows import OTHER_ROWS, own_rows
from surefoot.training.reporting import LastRecord, Report
from surefoot.training.rollback import RollBack
from surefoot.training.run_directory import RunDirectory
from surefoot.training.saving import SaveCheckpoints
from surefoot.training.signals import StopSignal
from surefoot.training.trainer import Trainer
from surefoot.version import VERSION
from surefoot.watching.hook import RecordVideos

_log = logging.getLogger("surefoot")


class Run:
    """A trainer with its hooks, sinks and checkpoints, optionally in a run directory."""

    def __init__(
        self,
        trainer: Trainer,
        config: Config,
        specs: Specs,
        source: EnvSource | None = None,
        directory: RunDirectory | None = None,
        hooks: Sequence[HookLike] = (),
        ranks: Ranks = ALONE,
    ) -> None:
        self.trainer, self.config, self.specs, self.ranks = trainer, config, specs, ranks
        self.stop_reason, self._source = "", source
        self._hook_states: dict[str, Any] = {}  # includes hooks that are not attached now
        self.record = LastRecord(config.log.log_every)
        self._attach(directory, hooks)

    def prepare(self, directory: RunDirectory | None = None, hooks: Sequence[HookLike] = ()) -> None:
        """Another directory and other hooks from now on; hooks get the states of earlier ones of the same name."""
        try:
            self._hook_states = self.hook_states()
        finally:
            self._attach(directory, hooks, self._hook_states)

    def _attach(
        self, directory: RunDirectory | None, hooks: Sequence[HookLike], saved: Mapping[str, Any] | None = None
    ) -> None:
        config, start, group = self.config, self.progress.step, HookGroup(named_hooks(self.config, hooks))
        if saved is not None:
            _load_hooks(group, saved)
        self.directory, self.hooks = directory, group
        self._saving: SaveCheckpoints | None = None
        self.alerts = AlertWatch(config)
        made_from = (config, self.policy, self._source, self.envs)
        evaluate = evaluator(*made_from) if self.ranks.is_first else None
        self._film = filmer(*made_from) if self.ranks.is_first else None
        self.evaluation = evaluate and EvaluateAndKeepBest(evaluate, self.state, config.train, start, directory)

    def set_total(self, steps: int) -> None:
        """Change the total number of steps."""
        self.config = build_config(self.config.model_dump(mode="json"), {"train.steps": steps})
        self.trainer.set_total(steps)

    @property
    def policy(self) -> Policy:
        """The policy that is trained."""
        return self.trainer.policy

    @property
    def envs(self) -> VecEnv:
        """The training environments."""
        return self.trainer.collector.rows.env

    @property
    def actors(self) -> Actors:
        """The policies that act in each row."""
        return self.trainer.collector.rows.actors

    @property
    def progress(self) -> Progress:
        """Steps and iterations so far."""
        return self.trainer.progress

    @property
    def learning(self) -> str:
        """What computes updates, on which device, and why."""
        return f"{self.trainer.learner.description}; device: {self.trainer.execution.device}"

    @property
    def is_ending(self) -> bool:
        """Whether this iteration is the last one."""
        return self.progress.is_done or bool(self.stop_reason)

    def stop(self, reason: str) -> None:
        """End the run after this iteration; the first reason counts."""
        self.stop_reason = self.stop_reason or reason

    def save(self) -> None:
        """Save a checkpoint after this iteration."""
        if self._saving is not None:
            self._saving.is_asked = True

    def load_policy(self, model: Path | str) -> Policy:
        """A trained policy, for a hook: of a file, a run directory or `zoo:NAME`; trusted as this run's config is."""
        return frozen_policy(model, self.config, self.specs)

    def load_state(self, state: Mapping[str, Any], source: Path | str = "the checkpoint") -> None:
        """Continue from a checkpoint, with a warning if that is not bit for bit; on an error nothing is changed."""
        with reading(source):
            state = own_rows(state, self.ranks)
            execution = self._resumed_execution(Saved(state))
            load_states({"hooks": self.hooks, **self.trainer.stateful()}, state)
            self.trainer.execution = execution
            record = {name: one.number() for name, one in Saved(state.get("record") or {}).entries().items()}
        self.record = LastRecord(self.config.log.log_every, record)
        self._hook_states = dict(state["hooks"])
        if self.evaluation is not None:
            self.evaluation.go_on_from(self.trainer.progress.step, state.get("evaluation_due") is True)
        if not self.trainer.collector.rows.is_exact and self.ranks.is_first:
            _log.warning(
                "resumed at step %d with new episodes: these environments cannot restore their state, or it was saved"
                " with another engine or number of environments or processes; the run continues from the same weights,"
                " optimizer and statistics, but not bit for bit",
                self.trainer.progress.step,
            )

    def load_hooks(self, saved: Mapping[str, Any]) -> None:
        """Load the states of hooks by name; states of hooks that are not attached are kept for later checkpoints."""
        _load_hooks(self.hooks, saved)
        self._hook_states = dict(saved)

    def hook_states(self) -> dict[str, Any]:
        """States of hooks by name, including those that are not attached now."""
        return self._hook_states | self.hooks.state()

    def _resumed_execution(self, saved: Saved) -> Execution:
        """With the threads of the saved run, unless their setting was changed; older checkpoints do not say."""
        before, execution = saved.get("execution"), self.trainer.execution
        if before is None or saved["config"]["train"]["threads"].value != self.config.train.threads:
            return execution
        return execution.resumed(before)

    def train(self, console: ConsoleMode | None = None) -> tuple[Evaluation | None, int]:
        """Train until the end or a signal, then save; returns the last evaluation and the exit code.

        After an error, the last complete iteration is saved, and the error says so. `console` replaces log.console.
        """
        trainer, start = self.trainer, self.trainer.progress.step
        self._log_beginning(start)
        if self._saves:
            state = self.whole_state()
            check_savable(state)
            self._hook_states = state["hooks"]
        is_cut = self._rewind()
        history = NO_HISTORY if self.directory is None else read_history(self.directory.metrics_file, start)
        first = start and start + (not is_cut)  # of the steps whose records are written from here on
        sinks = SinkGroup(self._sinks(start, first, console or self.config.log.console, history))
        trainer.hooks = self._attached(sinks, start, history)
        try:
            if self.directory is not None:
                self.directory.begin(start, state)
            with StopSignal() as stop, self._rescue():
                trainer.hooks.begin()
                if is_cut:
                    self._write_again(sinks)
                trainer.train(lambda: agreed_stop(self.ranks, stop) or bool(self.stop_reason))
                trainer.hooks.end()
                if self.stop_reason:
                    _log.info("stopped at step %d: %s", trainer.progress.step, self.stop_reason)
                if self._saving is not None:
                    self._saving.finish(trainer.progress.step)
                self.ranks.gather(None)  # torchrun ends all processes when one has ended with a code
        finally:
            trainer.hooks = HookGroup({})
            sinks.close()
        return (None if self.evaluation is None else self.evaluation.last), stop.exit_code

    def state(self) -> dict[str, Any]:
        """The content of a checkpoint: everything needed to continue the run and to act."""
        nothing: dict[str, Any] = {"best_score": None, "evaluation_due": False}
        evaluation = nothing if self.evaluation is None else self.evaluation.evaluation_state
        return {
            "config": self.config.model_dump(mode="json"),
            "obs_spec": spec_to_json(self.specs.obs),
            "action_spec": spec_to_json(self.specs.action),
            **evaluation,
            "record": self.record.metrics(evaluation["evaluation_due"]),
            "execution": self.trainer.execution.state(),
            "hooks": self.hook_states(),
            **states(self.trainer.stateful()),
        }

    def whole_state(self) -> dict[str, Any]:
        """The state with the rows of all processes; every process must call it."""
        state = self.state()
        others = self.ranks.gather(state["collector"])[1:]
        return state | {OTHER_ROWS: others} if others else state

    @property
    def _saves(self) -> bool:
        """Whether this process takes part in saving: only the first one has a directory."""
        return self.directory is not None or not self.ranks.is_first

    def _attached(self, sinks: SinkGroup, start: int, history: History) -> HookGroup:
        """The built-in hooks around the user's: rollback comes first; saving before all that may fail afterwards."""
        train, folder = self.config.train, None if self.directory is None else self.directory.path
        self.stop_reason = ""
        self._rollback = RollBack(self.trainer, self.config, folder)
        attached: dict[str, Hook] = {
            "surefoot.rollback": self._rollback,
            "surefoot.record": self.record,
            **self.hooks.named,
        }
        if self._saves:
            self._saving = SaveCheckpoints(
                self.directory, self.whole_state, train.checkpoint_every, train.keep_checkpoints, start, self.ranks
            )
            if self.ranks.size > 1:
                attached["surefoot.agreement"] = Agreement(self.ranks, self.trainer, self._saving)
            attached["surefoot.checkpoints"] = self._saving
        if self.evaluation is not None:
            attached["surefoot.evaluation"] = self.evaluation
        if self.ranks.is_first:
            self.alerts.recall(history.first)
            attached["surefoot.report"] = Report(sinks, self.config.log.log_every, self.alerts)
        if self._film is not None and self.directory is not None:
            attached["surefoot.videos"] = RecordVideos(self._film, self.directory, sinks, train, start)
        for hook in attached.values():
            hook.run = self
        return HookGroup(attached)

    @property
    def is_complete(self) -> bool:
        """Whether all steps are done, and a kill left neither their evaluation nor their record out."""
        return self.progress.is_done and not (self._lacks_evaluation or self._lacks_line)

    @property
    def _lacks_evaluation(self) -> bool:
        return self.evaluation is not None and self.evaluation.is_overdue

    @property
    def _lacks_line(self) -> bool:
        return self.directory is not None and self.record.lacks_line(self.directory, self.progress.step)

    def _rewind(self) -> bool:
        """Cut the records back to this step; returns whether a kill came before the one of this step was complete."""
        if self.directory is not None:
            self.directory.rewind(self.progress.step, not self._lacks_evaluation)
        return self._lacks_line

    def _write_again(self, sinks: SinkGroup) -> None:
        if self.evaluation is not None:
            self.record.loaded |= self.evaluation.late
        sinks.write(self.progress.step, self.record.loaded)

    @contextmanager
    def _rescue(self) -> Iterator[None]:
        """After any exception, save the last complete iteration; the error names the command that resumes the run."""
        try:
            yield
        except BaseException as error:
            text = str(error) if isinstance(error, SurefootError) else brief(error)
            _log.info("ended by an error: %s", text, exc_info=error)
            self.ranks.fail(error)
            saved = self._save_complete()
            if isinstance(error, SurefootError):
                error.args = (f"{error}; {saved}",) if saved else error.args
            elif isinstance(error, Exception):
                error.add_note(saved or "the run was not saved")
            else:
                who = f"code that Surefoot called raised {brief(error)} ({origin(error)})"
                raise PartError(f"{who}; it must not end the process" + f"; {saved}" * bool(saved)) from error
            raise

    def _save_complete(self) -> str:
        """Save the last complete iteration; returns where, for the message of an error."""
        try:
            self._rollback.undo_update()
            if self._saving is None or self.directory is None:
                return ""
            try:
                is_saved = self._saving.save(self.trainer.progress.step)
            except BaseException as error:
                _log.warning(
                    "saving without running episodes and without new states of failing hooks: %s", brief(error)
                )
                self._give_up_states()
                is_saved = self._saving.save(self.trainer.progress.step)
        except BaseException as error:
            _log.warning("the run could not be saved after an error: %s", brief(error))
            return ""
        step, path = self.trainer.progress.step, self.directory and self.directory.path
        return f"saved at step {step}; 'surefoot resume {path}' continues the run" if is_saved else ""

    def _give_up_states(self) -> None:
        """Leave out states that cannot be saved; their hooks have those of the beginning."""
        self.trainer.collector.rows.abandon()
        for name, hook in self.hooks.named.items():
            with suppress(SurefootError):
                state = HookGroup({name: hook}).state()
                check_savable(state)
                self._hook_states = self._hook_states | state
        self.hooks = HookGroup({})

    def _log_beginning(self, start: int) -> None:
        config = self.config
        _log.info(
            "surefoot %s, torch %s: %s, seed %d, from step %d to %d",
            *(VERSION, torch.__version__, config.env.id, config.train.seed, start, config.train.steps),
        )
        collector = self.trainer.collector
        # A user who selected the native engine sees the warning even without a log handler.
        surprising = config.rollout.engine.kind == "native" and not collector.is_native
        _log.log(logging.WARNING if surprising else logging.INFO, "rollouts: %s", collector.description)
        _log.info("learning: %s", self.learning)
        if self.envs.left_out:
            _log.info("left out of the observation: %s", ", ".join(self.envs.left_out))
        rows, num_steps = collector.rows, config.rollout.num_steps
        needed = readable(rollout_bytes(num_steps, rows.env, self.policy, rows.buffer.chunks))
        _log.info("a rollout of %d steps with %d rows takes %s of memory", num_steps, rows.env.num_rows, needed)
        if (threads := self.trainer.execution.torch_threads) > 1:
            _log.info(
                "PyTorch learns on %d threads; the last bits of the results depend on their number (train.threads)",
                threads,
            )
        if threads > (cores := available_cores()):
            _log.warning(
                "the run has %d PyTorch threads, but %d cores; consider --train.threads %d", threads, cores, cores
            )
        if config.train.video_every and self.ranks.is_first and (self._film is None or self.directory is None):
            missing = (
                "a run directory" if self.directory is None else "an env that can be created again: pass a function"
            )
            _log.warning("train.video_every has no effect without %s", missing)
        if self.directory is not None and not rows.can_save_envs():
            _log.info(
                "these environments cannot save their state: a resumed run continues from the same weights, optimizer,"
                " statistics and counters with new episodes, not bit for bit"
            )

    def _sinks(self, start: int, first: int, mode: ConsoleMode, history: History) -> list[Sink]:
        config = self.config
        if not self.ranks.is_first:
            return []
        sinks = [] if self.directory is None else open_sinks(self.directory.path, config, first)
        # Last, so that nothing can fail while a live display holds the terminal.
        place = "" if self.directory is None else f" · {self.directory.path}"
        title = f"{config.env.id} · seed {config.train.seed}{place}"
        console = build_console(mode, title, config.train.steps, start, history)
        return sinks if console is None else [*sinks, console]


def _load_hooks(group: HookGroup, saved: Mapping[str, Any]) -> None:
    with reading("the checkpoint"):
        load_states({"hooks": group}, {"hooks": saved})
