"""The only file that wires a config into objects."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from surefoot.data.records import Chunks
from surefoot.data.specs import ArraySpec, ObsSpec
from surefoot.envs.engines import Engine
from surefoot.envs.engines.ray import on_this_machine
from surefoot.envs.make import EnvSource, fixed_envs, is_instance, make_vec_env
from surefoot.envs.protocol import VecEnv
from surefoot.envs.protocol.agent_parameters import Values, agent_values, set_agent_values
from surefoot.errors import CheckpointMismatchError, ConfigError
from surefoot.evaluation.evaluate import evaluate
from surefoot.evaluation.evaluation import Evaluation, check_best_metric
from surefoot.learning.device_learner import DeviceLearner
from surefoot.learning.devices import choose_device, execution_of
from surefoot.learning.gradient import GradientStep, unchanged
from surefoot.learning.learner import Learner
from surefoot.learning.native_learner import LearnerPlan, NativeLearner, plan_learner
from surefoot.learning.reward_scaler import RewardScaler
from surefoot.learning.schedules import Schedules
from surefoot.learning.scorer import Scorer
from surefoot.learning.terms import Objective
from surefoot.machine.allocation import AllocationLimit, TooLargeError
from surefoot.machine.ram import free_ram
from surefoot.machine.ranks import ALONE, Ranks
from surefoot.machine.torch_defaults import restore_defaults, torch_threads
from surefoot.philox import Stream, derived_seed
from surefoot.policies.actor_critic import ActorCritic, EncoderFactory
from surefoot.policies.native_parts import NotNative
from surefoot.policies.policy import Policy
from surefoot.rollout.choice import collector_of
from surefoot.rollout.collector import Collector
from surefoot.rollout.shared_collector import SharedCollector
from surefoot.settings.config import Config
from surefoot.storage.saved import Saved, reading
from surefoot.telemetry.sinks import check_sinks
from surefoot.training.trainer import Trainer
from surefoot.watching.hook import Film, check_videos
from surefoot.watching.playing import Program
from surefoot.watching.recording import record
from surefoot.watching.stage import MOST_FPS, RenderMode, Stage
from surefoot.watching.video_file import Preview, most_fps

_log = logging.getLogger("surefoot")

MOST_TENSORS = 100_000
"""Maximum number of tensors of a policy."""
EVALUATION_ROWS = 8
"""Number of parallel envs in an evaluation."""


@dataclass(frozen=True)
class Specs:
    """The observation and action specs of a policy."""

    obs: ObsSpec
    action: ArraySpec


def build_policy(
    config: Config, specs: Specs, encoder: EncoderFactory | None = None, limit: AllocationLimit | None = None
) -> Policy:
    """The configured policy; its weights depend only on the seed, and PyTorch's global generator is unchanged."""
    with (
        torch.random.fork_rng(devices=[]),
        torch_threads(1),
    ):  # the rounding of orthogonal weights depends on the number of threads
        torch.manual_seed(derived_seed(config.train.seed, 0, Stream.WEIGHTS))
        try:
            with limit or AllocationLimit(free_ram(), MOST_TENSORS):
                return ActorCritic(specs.obs, specs.action, config.policy, config.normalize, encoder)
        except (TooLargeError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
                raise
            sizes = "policy.hidden, policy.memory.hidden_size and the encoders' sizes"
            raise ConfigError([f"the policy does not fit into memory; reduce {sizes}"]) from error


def build_saved_policy(
    config: Config, specs: Specs, state: Mapping[str, Any], path: Path | str, encoder: EncoderFactory | None = None
) -> Policy:
    """The policy that a checkpoint describes, which must not be much larger than the weights in the file."""
    with reading(path):
        weights = [entry.array() for entry in Saved(state)["policy"].entries().values()]
        limit = AllocationLimit(4 * sum(one.nbytes for one in weights) + 2**26, 10 * len(weights) + 1000)
        try:
            return build_policy(config, specs, encoder, limit)
        except ConfigError as error:
            raise CheckpointMismatchError(f"its config does not describe its policy: {error}") from error


def build_env(
    config: Config, source: EnvSource | None = None, seed: int | None = None, rows: int = 0, ranks: Ranks = ALONE
) -> VecEnv:
    """The training envs of this process; with a seed, envs for evaluation (`env.eval_kwargs`) on this machine."""
    count, is_for_training = rows or config.rollout.num_envs, seed is None
    ranks.check_envs(count)
    env = make_vec_env(
        config.env.id if source is None else source,
        config.env if is_for_training else config.env.for_evaluation,
        count,
        config.train.seed if seed is None else seed,
        config.rollout if is_for_training else on_this_machine(config.rollout),
        ranks.share(count),
    )
    restore_defaults()
    if env.left_out and is_for_training and ranks.is_first:
        _log.warning("a policy cannot learn from %s; left out of the observation", ", ".join(env.left_out))
    return env


def build_trainer(config: Config, env: VecEnv, policy: Policy, ranks: Ranks = ALONE) -> Trainer:
    """The trainer for an env and a policy; with other processes, every one of them must call this."""
    device = choose_device(config, policy, ranks)
    check_sinks(config.log)
    check_videos(config.train)
    check_best_metric(config.train.best_metric, env.metrics)
    ppo = config.ppo
    collector = build_collector(config, env, policy)
    if ranks.size > 1:
        collector = SharedCollector(collector, ranks)
    objective = Objective.of(ppo)
    plan = learner_plan(config, policy, objective) if device.is_cpu else NotNative(str(device))
    keeps_cores_busy = isinstance(env, Engine) and env.keeps_cores_busy
    execution = execution_of(config, policy, keeps_cores_busy, isinstance(plan, LearnerPlan), ranks, device)
    learner: Learner
    if device.is_cpu:
        learner = build_learner(config, policy, objective, plan, execution.reduce)
    else:
        learner = DeviceLearner(policy, objective, config, device.device, execution.reduce)
    rows = sum(ranks.gather(env.num_rows))
    scaler = RewardScaler(rows, ppo.gamma, config.normalize.reward_clip) if config.normalize.reward else None
    return Trainer(
        policy=policy,
        collector=collector,
        scorer=Scorer(ppo, scaler),
        learner=learner,
        schedules=Schedules(config),
        execution=execution,
        total=config.train.steps,
    )


def learner_plan(config: Config, policy: Policy, objective: Objective) -> LearnerPlan | NotNative:
    """The plan of the native learner, or the reason why PyTorch learns."""
    if config.train.learner == "torch":
        return NotNative("train.learner is torch")
    plan = plan_learner(policy, objective.terms.values())
    if isinstance(plan, NotNative) and config.train.learner == "native":
        raise ConfigError([f"train.learner: cannot be native: {plan.reason}; set it to auto"])
    return plan


def build_learner(
    config: Config,
    policy: Policy,
    objective: Objective,
    plan: LearnerPlan | NotNative | None = None,
    reduce: Callable[..., None] = unchanged,
) -> Learner:
    """The native learner if there is a plan for it, else the one in PyTorch."""
    plan = plan or learner_plan(config, policy, objective)
    gradient = GradientStep(policy, config.optimizer, config.ppo.max_grad_norm, reduce)
    if isinstance(plan, LearnerPlan):
        return NativeLearner(policy, objective, gradient, config, plan)
    learner = Learner(policy, objective, gradient, config)
    learner.description += f" ({plan.reason})"
    return learner


def build_collector(config: Config, env: VecEnv, policy: Policy) -> Collector:
    """The collector for these envs and this policy, here or on other machines."""
    num_steps, seed = config.rollout.num_steps, config.train.seed
    chunks = Chunks(num_steps, config.rollout.sequence_length, config.ppo.burn_in)
    return collector_of(env, policy, num_steps, seed, chunks)


def evaluator(
    config: Config, policy: Policy, source: EnvSource | None, trained_in: VecEnv | None = None
) -> Callable[[], Evaluation] | None:
    """Evaluates the policy on separate envs; None if the source is an env instance, which cannot be created again.

    They get the parameters of the agent from the envs that it is trained in.
    """
    episodes = config.train.eval_episodes
    if episodes == 0 or is_instance(source):
        return None
    seed = derived_seed(config.train.seed, 0, Stream.EVALUATION)

    def run() -> Evaluation:
        env = build_env(config, source, seed, evaluation_rows(source, episodes))
        try:
            set_agent_values(env, {} if trained_in is None else agent_values(trained_in))
            return evaluate(policy, env, episodes, seed)
        finally:
            env.close()

    return run


def evaluation_rows(source: EnvSource | None, episodes: int) -> int:
    """Number of parallel envs in an evaluation: of a list of factories, every one plays."""
    count = None if source is None else fixed_envs(source)
    return min(episodes, count or EVALUATION_ROWS)


def build_stage(
    config: Config, source: EnvSource | None, mode: RenderMode, fps: float = MOST_FPS, of_agent: Values | None = None
) -> Stage:
    """An env like those of evaluations that is drawn, in this process, with the parameters of the agent."""
    one = source[0] if isinstance(source, list | tuple) else source
    return Stage(config.env.id if one is None else one, config.env.for_evaluation, mode, fps, of_agent)


def filmer(
    config: Config, policy: Policy, source: EnvSource | None, trained_in: VecEnv | None = None
) -> Callable[[Path], Film] | None:
    """Records the policy in a file; None if it is not wanted, or if the source cannot be created again."""
    train = config.train
    if train.video_every == 0 or is_instance(source):
        return None
    seed = derived_seed(train.seed, 0, Stream.EVALUATION)
    program = Program(train.video_episodes, seed, most_steps=train.video_steps)

    def run(path: Path) -> Film:
        of_agent = {} if trained_in is None else agent_values(trained_in)
        stage, preview = build_stage(config, source, "rgb_array", most_fps(path, MOST_FPS), of_agent), Preview()
        try:
            recording = record(policy, stage, program, EVALUATION_ROWS, path, preview=preview)
        finally:
            stage.close()
        return Film(recording, preview)

    return run
