"""The only file that wires a config into objects."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from surefoot.core.config import Config
from surefoot.core.errors import CheckpointError, ConfigError, EnvError
from surefoot.core.layers import Raw, build_config
from surefoot.core.memory import readable
from surefoot.core.philox import Stream, derived_seed
from surefoot.core.records import Chunks
from surefoot.core.specs import ArraySpec, ObsSpec, spec_from_json, spec_to_json
from surefoot.core.torch_threads import one_torch_thread
from surefoot.core.version import VERSION
from surefoot.envs.engines import Engine
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import EnvSource, fixed_envs, make_vec_env
from surefoot.envs.protocol import VecEnv
from surefoot.evaluation.evaluate import Evaluation, evaluate
from surefoot.evaluation.hook import EvaluateAndKeepBest
from surefoot.learning.advantage import Scorer
from surefoot.learning.learner import Learner
from surefoot.learning.optimizer import GradientStep
from surefoot.learning.reward_scaler import RewardScaler
from surefoot.learning.schedules import Schedules
from surefoot.learning.threads import set_learning_threads
from surefoot.policies.native_plan import plan_policy
from surefoot.policies.policy import ActorCritic, EncoderFactory, Policy
from surefoot.rollout.collector import Collector
from surefoot.rollout.memory import rollout_bytes
from surefoot.rollout.native import NativeCollector
from surefoot.rollout.one_torch_thread import OneTorchThread
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.telemetry.console import build_console
from surefoot.telemetry.sink_group import SinkGroup
from surefoot.telemetry.sinks import Sink, check_sinks, open_sinks
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

EVALUATION_ROWS = 8
"""Envs that an evaluation steps side by side."""
FIXED_ON_RESUME = ("env", "policy", "normalize", "train.seed")
"""What a resumed run cannot change: it decides what the saved numbers mean."""


@dataclass(frozen=True)
class Specs:
    """What a policy is built for."""

    obs: ObsSpec
    action: ArraySpec


def build_policy(config: Config, specs: Specs, encoder: EncoderFactory | None = None) -> Policy:
    """The configured policy; its weights depend on the seed alone, and torch's own generator is left as it was."""
    with torch.random.fork_rng(devices=[]), one_torch_thread():  # orthogonal weights round by the number of threads
        torch.manual_seed(derived_seed(config.train.seed, 0, Stream.WEIGHTS))
        try:
            return ActorCritic(specs.obs, specs.action, config.policy, config.normalize, encoder)
        except RuntimeError as error:
            if "allocate memory" not in str(error):
                raise
            sizes = "policy.hidden, policy.memory.hidden_size and the encoders' sizes"
            raise ConfigError([f"the policy does not fit into memory; make it smaller ({sizes})"]) from error


def build_env(config: Config, source: EnvSource | None = None, seed: int | None = None, rows: int = 0) -> VecEnv:
    """The training envs, or others like them with another seed and number."""
    return make_vec_env(
        config.env.id if source is None else source,
        config.env,
        rows or config.rollout.num_envs,
        config.train.seed if seed is None else seed,
        config.rollout,
    )


def build_trainer(config: Config, env: VecEnv, policy: Policy) -> Trainer:
    """Everything that learns, around an env and a policy."""
    check_sinks(config.log)
    set_learning_threads(policy, config)
    seed, ppo = config.train.seed, config.ppo
    gradient = GradientStep(policy, config.optimizer, ppo.max_grad_norm)
    scaler = RewardScaler(env.num_rows, ppo.gamma, config.normalize.reward_clip) if config.normalize.reward else None
    return Trainer(
        policy=policy,
        collector=build_collector(config, env, policy),
        scorer=Scorer(ppo, scaler),
        learner=Learner(policy, gradient, ppo, config.normalize, seed),
        schedules=Schedules(ppo, config.optimizer),
        total_steps=config.train.steps,
    )


def build_collector(config: Config, env: VecEnv, policy: Policy) -> Collector:
    """Whole rollouts in the core if it knows both the envs and the policy, else step by step."""
    num_steps, seed = config.rollout.num_steps, config.train.seed
    chunks = Chunks(num_steps, config.rollout.sequence_length, config.ppo.burn_in)
    plan = plan_policy(policy)
    if isinstance(env, NativeEngine) and not isinstance(plan, str):
        return OneTorchThread(NativeCollector(env, policy, plan, num_steps, seed, chunks))
    stepwise = StepwiseCollector(env, policy, num_steps, seed, chunks)
    return OneTorchThread(stepwise) if isinstance(env, Engine) and env.keeps_cores_busy else stepwise


def describe_rollouts(env: VecEnv, policy: Policy) -> tuple[str, bool]:
    """Who collects, in a line that says why it is not the core if it is not, and whether it is the core."""
    plan = plan_policy(policy)
    if isinstance(env, NativeEngine) and not isinstance(plan, str):
        return f"native on {env.threads} threads", True
    reason = plan if isinstance(env, NativeEngine) else getattr(env, "why_not_native", "")
    name = type(env).name if isinstance(env, Engine) else "a vector env of its own"
    return f"step by step, {name}" + f" ({reason})" * bool(reason), False


def evaluator(config: Config, policy: Policy, source: EnvSource | None) -> Callable[[], Evaluation] | None:
    """Evaluates the policy on envs of its own; None if the source is an env that cannot be made again."""
    episodes = config.train.eval_episodes
    if episodes == 0 or (source is not None and fixed_envs(source) is not None):
        return None
    seed = derived_seed(config.train.seed, 0, Stream.EVALUATION)

    def run() -> Evaluation:
        env = build_env(config, source, seed, min(episodes, EVALUATION_ROWS))
        try:
            return evaluate(policy, env, episodes, seed)
        finally:
            env.close()

    return run


def saved_setup(state: Mapping[str, Any], path: Path) -> tuple[Config, Specs]:
    """The config and specs inside a checkpoint."""
    missing = [part for part in ("config", "obs_spec", "action_spec", "policy") if part not in state]
    if missing:
        raise CheckpointError(f"{path} lacks {', '.join(missing)}: it is no policy")
    try:
        obs, action = spec_from_json(state["obs_spec"]), spec_from_json(state["action_spec"])
        config = build_config(state["config"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: it does not describe a policy") from error
    assert isinstance(action, ArraySpec)
    return config, Specs(obs, action)


def resumed_config(saved: Config, changes: Raw) -> Config:
    """The config to go on with: what may change is applied, the rest is refused, all at once."""
    wanted = build_config(saved.model_dump(mode="json"), changes)
    problems = []
    for fixed in FIXED_ON_RESUME:
        section, _, only = fixed.partition(".")
        old, new = getattr(saved, section), getattr(wanted, section)
        for key in [only] if only else list(type(old).model_fields):
            if getattr(old, key) != getattr(new, key):
                problems.append(
                    f"{section}.{key}: cannot change on resume (the run has {getattr(old, key)!r}, asked for"
                    f" {getattr(new, key)!r}); start a new run for that"
                )
    if problems:
        raise ConfigError(problems)
    return wanted


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
