"""A run: a trainer with everything that watches it, from its first step to its last checkpoint."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from surefoot.compose import Specs, describe_rollouts, evaluator
from surefoot.core.config import Config
from surefoot.core.errors import EnvError
from surefoot.core.memory import readable
from surefoot.core.specs import spec_to_json
from surefoot.core.version import VERSION
from surefoot.envs.make import EnvSource
from surefoot.evaluation.evaluate import Evaluation
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.rollout.memory import rollout_bytes
from surefoot.telemetry.console import build_console
from surefoot.telemetry.sink_group import SinkGroup
from surefoot.telemetry.sinks import Sink, open_sinks
from surefoot.telemetry.watch import AlertWatch
from surefoot.training.checkpoint import check_savable
from surefoot.training.hooks import Hook
from surefoot.training.reporting import Report
from surefoot.training.restore import restore_trainer, trainer_state
from surefoot.training.rollback import RollBack
from surefoot.training.run_directory import RunDirectory
from surefoot.training.saving import SaveCheckpoints
from surefoot.training.signals import StopSignal
from surefoot.training.trainer import Trainer

_log = logging.getLogger("surefoot")


class Run:
    """A trainer with everything that watches it, optionally in a run directory."""

    def __init__(
        self,
        trainer: Trainer,
        config: Config,
        specs: Specs,
        source: EnvSource | None = None,
        directory: RunDirectory | None = None,
    ) -> None:
        self.trainer, self.config, self.specs = trainer, config, specs
        self.directory = directory
        evaluation = evaluator(config, trainer.policy, source)
        self.evaluation = None if evaluation is None else self._keep_best(evaluation)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint, and say so if that cannot be bit for bit."""
        is_exact = restore_trainer(self.trainer, dict(state))
        if self.evaluation is not None:
            self.evaluation.go_on_from(self.trainer.progress.step)
        if not is_exact:
            _log.warning(
                "resumed at step %d with new episodes: these envs cannot restore their state, or it was saved by"
                " another engine or for another number of them; so the run goes on from the same weights, optimizer and"
                " statistics, but not bit for bit",
                self.trainer.progress.step,
            )

    def train(self, hooks: Sequence[Hook] = ()) -> tuple[Evaluation | None, int]:
        """Train to the end or to a signal, then save; the last evaluation, and the exit code."""
        trainer, train = self.trainer, self.config.train
        start = trainer.progress.step
        self._log_beginning(start)
        if self.directory is not None:
            check_savable(self.state())
        sinks = SinkGroup(self._sinks(start))
        folder = None if self.directory is None else self.directory.path
        attached: list[Hook] = [RollBack(trainer, self.config, folder), *hooks]
        if self.evaluation is not None:
            attached.append(self.evaluation)
        attached.append(Report(sinks, self.config.log.log_every, AlertWatch(self.config)))
        saving = None
        if self.directory is not None:
            saving = SaveCheckpoints(self.directory, self.state, train.checkpoint_every, train.keep_checkpoints, start)
            attached.append(saving)
        try:
            with StopSignal() as stop:
                trainer.train(attached, stop.is_requested)
                if saving is not None:
                    saving.finish(trainer.progress.step)
        except EnvError as error:
            _log.info("ended by an error: %s", error)
            if saving is not None and saving.save(trainer.progress.step):
                raise self._resumable(error) from error
            raise
        finally:
            sinks.close()
        return (None if self.evaluation is None else self.evaluation.last), stop.exit_code

    def state(self) -> dict[str, Any]:
        """What a checkpoint of this run holds: what is needed to go on, and what is needed to act."""
        return {
            "config": self.config.model_dump(mode="json"),
            "obs_spec": spec_to_json(self.specs.obs),
            "action_spec": spec_to_json(self.specs.action),
            "best_score": None if self.evaluation is None else self.evaluation.best,
            **trainer_state(self.trainer),
        }

    def _resumable(self, error: EnvError) -> EnvError:
        """The envs ended the run, but nothing was lost."""
        step, path = self.trainer.progress.step, self.directory and self.directory.path
        return type(error)(f"{error}; saved at step {step}; 'surefoot resume {path}' goes on from there")

    def _log_beginning(self, start: int) -> None:
        config = self.config
        _log.info(
            "surefoot %s, torch %s: %s, seed %d, from step %d to %d",
            *(VERSION, torch.__version__, config.env.id, config.train.seed, start, config.train.steps),
        )
        line, is_native = describe_rollouts(self.trainer.collector.rows.env, self.trainer.policy)
        # Somebody who asked for the core by name should hear of it even where nothing listens to the log.
        surprising = config.rollout.engine == "native" and not is_native
        _log.log(logging.WARNING if surprising else logging.INFO, "rollouts: %s", line)
        rows, num_steps = self.trainer.collector.rows, config.rollout.num_steps
        env, needed = rows.env, readable(rollout_bytes(num_steps, rows.env, self.trainer.policy, rows.buffer.chunks))
        _log.info("a rollout of %d steps of %d rows takes %s of memory", num_steps, env.num_rows, needed)
        if self.directory is not None and not self.trainer.collector.rows.can_save_envs():
            _log.info(
                "these envs cannot save their state: a resumed run goes on from the same weights, optimizer, statistics"
                " and counters with new episodes, not bit for bit"
            )

    def _keep_best(self, evaluation: Callable[[], Evaluation]) -> EvaluateAndKeepBest:
        best_file = None if self.directory is None else self.directory.best
        every, start = self.config.train.eval_every, self.trainer.progress.step
        best = None if self.directory is None else self.directory.best_score()
        return EvaluateAndKeepBest(evaluation, self.state, every, start, best_file, best)

    def _sinks(self, start: int) -> list[Sink]:
        config = self.config
        sinks = [] if self.directory is None else open_sinks(self.directory.path, config)
        # Last, so that nothing can fail while a live display holds the terminal.
        place = "" if self.directory is None else f" · {self.directory.path}"
        title = f"{config.env.id} · seed {config.train.seed}{place}"
        console = build_console(config.log.console, title, config.train.steps, start)
        return sinks if console is None else [*sinks, console]
