"""The typed config: frozen sections, each key with its type, range, default and meaning in one place."""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny

from surefoot.settings.parts import Knob, KnobMark, PartOf, PartSettings, PartsOf, Section
from surefoot.settings.plain_values import plain
from surefoot.settings.registry import nearest
from surefoot.statistics.alpha import DEFAULT_ALPHA

Activation = Literal["tanh", "relu", "elu", "silu", "leaky_relu", "gelu"]
_LARGEST = 1e38  # float32 can hold it, also added to 1
Positive = Annotated[float, Field(gt=0, le=_LARGEST)]
NonNegative = Annotated[float, Field(ge=0, le=_LARGEST)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]


def _whole(value: Any) -> Any:
    """A count may be written as 1e6."""
    try:
        return int(float(value)) if isinstance(value, str) and float(value).is_integer() else value
    except ValueError:
        return value


MOST = 2**53
"""The largest whole number in a config: beyond it, floats are not exact."""
Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=MOST)]
Number = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MOST)]


def _from_commas(value: Any) -> Any:
    """The command line's "64,64" (or a lone 64) for a list."""
    if isinstance(value, str):
        return [word.strip() for word in value.strip("[]()").split(",") if word.strip()]
    return [value] if isinstance(value, int) else value


def _off_is_a_word(value: Any) -> Any:
    """YAML reads `off` as false."""
    return "off" if value is False else value


def _not_float16(value: Any) -> Any:
    """Small gradients are zero in float16, unless losses are scaled up by a factor that has to be found."""
    if value in ("float16", "fp16", "half"):
        raise ValueError("float16 has too small a range for gradients without loss scaling; set bfloat16 or float32")
    return value


def _device(name: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d{1,4})?", name):
        raise ValueError("must be auto, cpu, cuda, mps or one of several GPUs such as cuda:1")
    return name


Sizes = Annotated[tuple[Count, ...], BeforeValidator(_from_commas)]
Names = Annotated[tuple[str, ...], BeforeValidator(_from_commas)]
Decays = Annotated[tuple[Decay, Decay], BeforeValidator(_from_commas)]

Encoder = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.policies.encoders", "auto"))]
Memory = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.policies.memory", "none"))]
Distribution = Annotated[
    SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.policies.distributions", "auto"))
]
Critic = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.policies.critics", "scalar"))]
Engine = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.envs.engines", "auto"))]
Estimator = Annotated[SerializeAsAny[PartSettings], BeforeValidator(PartOf("surefoot.learning.estimators", "gae"))]
Parts = dict[str, SerializeAsAny[PartSettings]]
Encoders = Annotated[Parts, BeforeValidator(PartsOf("surefoot.policies.encoders", "auto"))]
Terms = Annotated[Parts, BeforeValidator(PartsOf("surefoot.learning.terms"))]
Transforms = Annotated[Parts, BeforeValidator(PartsOf("surefoot.learning.transforms"))]
SchedulesByKnob = Annotated[Parts, BeforeValidator(PartsOf("surefoot.learning.schedules", "constant"))]
Hooks = Annotated[Parts, BeforeValidator(PartsOf("surefoot.training.hooks"))]
Sinks = Annotated[Parts, BeforeValidator(PartsOf("surefoot.telemetry.sinks"))]


class EnvConfig(Section):
    """Which environment."""

    id: str = Field(
        "CartPole-v1", description="Gymnasium id, module:id, pettingzoo:MODULE, envpool:TASK or ./my_env.so"
    )
    kwargs: Annotated[dict[str, Any], AfterValidator(plain)] = Field(
        {}, description="arguments of the environment's constructor"
    )
    eval_kwargs: Annotated[dict[str, Any], AfterValidator(plain)] = Field(
        {}, description="arguments that differ in evaluation, such as {reward_clip: false}; the others are kwargs"
    )
    max_episode_steps: Count | None = Field(
        None, description="time limit in steps, for an id; replaces the environment's own limit"
    )
    truncation_as_termination: bool = Field(
        False,
        description="treat time limits as terminations; only for environments without final observations, or where an"
        " undiscounted horizon is part of the task",
    )
    metrics: dict[str, Literal["last", "mean", "sum"]] = Field(
        {}, description="info keys to report as metrics, each with its summary over an episode: last, mean or sum"
    )

    @property
    def for_evaluation(self) -> "EnvConfig":
        """As in training, but with `eval_kwargs` over `kwargs`: unclipped rewards, whole games."""
        return self.model_copy(update={"kwargs": self.kwargs | self.eval_kwargs}) if self.eval_kwargs else self


class PolicyConfig(Section):
    """Networks, action distribution and critic."""

    encoder: Encoder = Field(PartSettings(kind="auto"), description="encoder of the observation")
    encoders: Encoders = Field({}, description="Dict observations: encoder per key")
    memory: Memory = Field(PartSettings(kind="none"), description="recurrent layers between encoder and trunk")
    share_memory: bool = Field(
        False, description="actor and critic share encoder and memory but not the trunk (share_trunk shares all three)"
    )
    hidden: Sizes = Field((64, 64), description="hidden sizes of the trunk between encoder and heads")
    critic_hidden: Sizes | None = Field(
        None, description="hidden sizes of the critic's trunk; none means those of hidden"
    )
    activation: Activation = Field("tanh", description="activation of encoders and trunks")
    share_trunk: bool = Field(False, description="actor and critic share encoder, memory and trunk")
    orthogonal_init: bool = Field(
        True,
        description="orthogonal initialization (gain sqrt 2, policy head 0.01, value head 1), else PyTorch's",
    )
    distribution: Distribution = Field(
        PartSettings(kind="auto"), description="action distribution; auto chooses by action space"
    )
    critic: Critic = Field(PartSettings(kind="scalar"), description="critic")
    critic_obs: Names = Field((), description="observation keys that only the critic sees")
    precision: Annotated[Literal["float32", "bfloat16"], BeforeValidator(_not_float16)] = Field(
        "float32", description="bfloat16 runs encoders and trunks under autocast"
    )

    @property
    def sizes_of_critic(self) -> tuple[int, ...]:
        """The hidden sizes of the critic's trunk, if it has one."""
        return self.hidden if self.critic_hidden is None else self.critic_hidden


class RolloutConfig(Section):
    """How experience is collected."""

    num_envs: Count = Field(8, description="number of parallel environments")
    num_steps: Count = Field(256, ge=2, description="steps per environment and rollout, at least 2")
    sequence_length: Count = Field(24, description="recurrent policies: steps per training sequence")
    engine: Engine = Field(
        PartSettings(kind="auto"),
        description="how environments are stepped: native (C++ threads), local (this process), processes, ray (many"
        " machines); auto uses native where the core has the environment, local elsewhere",
    )
    workers: Number = Field(
        0, le=1024, description="number of threads (native) or processes (processes); 0 means one per core"
    )
    groups: Number = Field(
        0,
        description="groups of rows; the policy acts for one group while the others step; 0 means 2 for processes with"
        " 32 or more environments, 1 otherwise",
    )

    @property
    def size(self) -> int:
        """Transitions in a rollout of single-agent envs."""
        return self.num_envs * self.num_steps


class PPOConfig(Section):
    """The algorithm."""

    gamma: Fraction = Field(0.99, description="discount factor")
    gae_lambda: Fraction = Field(0.95, description="lambda of generalized advantage estimation")
    estimator: Estimator = Field(PartSettings(kind="gae"), description="how advantages and returns are estimated")
    epochs: Count = Field(10, description="passes over each rollout")
    batch_size: Count = Field(64, description="samples per minibatch; must divide the rollout")
    micro_batch_size: Count | None = Field(
        None, description="accumulate gradients over micro-batches of this many samples"
    )
    clip: Annotated[Positive, KnobMark()] = Field(0.2, description="clip range of the probability ratio")
    clip_value: Positive | None = Field(
        None, description="clip range of the value loss, in standard deviations if returns are normalized"
    )
    entropy_coef: Knob = Field(0.0, description="weight of the entropy bonus")
    value_coef: Knob = Field(0.5, description="weight of the critic's loss")
    surrogate_coef: Knob = Field(1.0, description="weight of the clipped surrogate; 0 only measures it")
    terms: Terms = Field({}, description="additional terms of the loss, by name")
    max_grad_norm: Positive | None = Field(0.5, description="maximum global norm of the gradient")
    target_kl: Positive | None = Field(None, description="stop the update when the KL divergence exceeds this value")
    advantage_norm: Literal["rollout", "minibatch", "none"] = Field(
        "rollout", description="normalize advantages over the rollout, per minibatch, or not at all"
    )
    sequence_state: Literal["stored", "recomputed"] = Field(
        "stored",
        description="recurrent policies: start training sequences from the stored hidden state, or recompute it every"
        " epoch",
    )
    burn_in: Number = Field(
        0, description="recurrent policies: steps before a sequence over which its hidden state is recomputed"
    )


class OptimizerConfig(Section):
    """The optimizer and its learning rate."""

    algorithm: Literal["adam", "adamw"] = Field("adam", description="optimizer")
    lr: Annotated[Positive, KnobMark()] = Field(3e-4, description="initial learning rate")
    adam_eps: Positive = Field(1e-5, description="Adam's epsilon")
    betas: Decays = Field((0.9, 0.999), description="Adam's decay rates")
    weight_decay: NonNegative = Field(0.0, description="weight decay: decoupled with adamw, L2 with adam")
    transforms: Transforms = Field(
        {}, description="gradient transforms between backward and the norm clip, by name, applied in order"
    )
    clip_grad: Literal["together", "apart"] = Field(
        "together",
        description="ppo.max_grad_norm limits the norm of the whole gradient (together), or those of actor and critic,"
        " which must share no parameters (apart)",
    )
    frozen: Names = Field(
        (),
        description="parameters that do not learn: parts of the policy as in train/<part>_grad_norm, modules, or"
        " patterns of parameter names such as actor_body.*",
    )


class NormalizeConfig(Section):
    """Running normalization."""

    obs: bool = Field(False, description="normalize observations by their running mean and standard deviation")
    obs_clip: Positive = Field(10.0, description="clip range of normalized observations")
    reward: bool = Field(False, description="scale rewards by the standard deviation of the discounted return")
    reward_clip: Positive = Field(10.0, description="clip range of scaled rewards")
    returns: bool = Field(False, description="train the critic on normalized returns (PopArt)")
    return_stats: Literal["current", "previous"] = Field(
        "current", description="whether the statistics of an update include its own rollout"
    )


class TrainConfig(Section):
    """Length of the run, checkpoints and evaluation."""

    steps: Count = Field(100_000, description="total environment steps")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(0, description="random seed")
    start_from: str | None = Field(
        None,
        min_length=1,
        description="model whose weights and normalizers a new run starts from: a .safetensors file, a run directory"
        " or zoo:NAME",
    )
    checkpoint_every: Count = Field(100_000, description="steps between checkpoints")
    keep_checkpoints: Count = Field(3, description="number of periodic checkpoints to keep")
    eval_every: Number = Field(0, description="steps between evaluations; 0 means only at the end")
    eval_episodes: Number = Field(10, description="episodes per evaluation; 0 disables evaluation")
    best_metric: str = Field(
        "mean_reward",
        description="evaluation score that decides which policy is kept as the best: mean_reward, cvar or another"
        " eval/ metric, a metric of the environment, or -metric where lower is better",
    )
    cvar_alpha: Share = Field(DEFAULT_ALPHA, description="share of the worst episodes that eval/cvar is the mean of")
    video_every: Number = Field(
        0, description="steps between videos of the policy in the run directory, and one at the end; 0 means never"
    )
    video_episodes: Count = Field(1, description="episodes per video")
    video_steps: Count = Field(1000, description="steps after which an episode in a video is cut off")
    video_format: Literal["mp4", "gif"] = Field("mp4", description="format of videos; mp4 needs the extra video")
    max_skipped_steps: Count = Field(
        10, description="consecutive gradient steps with NaN or infinity before rolling back to the last good weights"
    )
    max_rollbacks: Number = Field(
        3, description="rollbacks before the run ends with an error; reset after 100 good iterations"
    )
    learner: Literal["auto", "torch", "native"] = Field(
        "auto", description="what computes updates: the core if it supports the policy (auto, native), or PyTorch"
    )
    device: Annotated[str, AfterValidator(_device)] = Field(
        "auto",
        description="where PyTorch learns: cpu, cuda, cuda:1 or mps; auto is cuda if there is one and minibatches"
        " are large, else cpu; rollouts and the native learner always use the CPU",
    )
    threads: Number = Field(
        0,
        le=1024,
        description="maximum number of threads for learning, in the core and in PyTorch; 0 means one per core",
    )


class LogConfig(Section):
    """Logging and display."""

    console: Annotated[Literal["auto", "live", "line", "plain", "off"], BeforeValidator(_off_is_a_word)] = Field(
        "auto",
        description="live display, one line of progress, or plain lines; auto: live on a terminal, plain elsewhere; in"
        " Python, a line on a terminal or in a notebook, nothing elsewhere",
    )
    tensorboard: bool = Field(True, description="write TensorBoard events")
    wandb: bool = Field(False, description="log to Weights & Biases (extra wandb); WANDB_MODE=offline for offline runs")
    wandb_project: str = Field("surefoot", min_length=1, description="Weights & Biases project")
    wandb_name: Annotated[str, Field(min_length=1, max_length=128)] | None = Field(
        None, description="name of the run in Weights & Biases; none means the name of the run directory"
    )
    sinks: Sinks = Field({}, description="additional metric sinks, by name")
    log_every: Count = Field(1, description="iterations between metric records")


class Config(Section):
    """Everything that defines a run."""

    env: EnvConfig = Field(default_factory=EnvConfig)
    policy: PolicyConfig = Field(default_factory=PolicyConfig)
    rollout: RolloutConfig = Field(default_factory=RolloutConfig)
    ppo: PPOConfig = Field(default_factory=PPOConfig)
    optimizer: OptimizerConfig = Field(default_factory=OptimizerConfig)
    schedules: SchedulesByKnob = Field({}, description="schedules of knobs such as lr, clip and entropy_coef")
    normalize: NormalizeConfig = Field(default_factory=NormalizeConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    hooks: Hooks = Field({}, description="hooks that run with the training loop, by name")
    log: LogConfig = Field(default_factory=LogConfig)

    def cross_problems(self) -> list[str]:
        """Problems between settings that are valid on their own."""
        problems = []
        size, batch = self.rollout.size, self.ppo.batch_size
        if size % batch:
            problems.append(
                f"ppo.batch_size: {batch} does not divide the rollout of {size} steps (rollout.num_envs x"
                f" rollout.num_steps); the nearest divisor is {nearest_divisor(size, batch)}"
            )
        micro = self.ppo.micro_batch_size
        if micro is not None and micro > batch:
            problems.append(f"ppo.micro_batch_size: {micro} is larger than ppo.batch_size {batch}")
        if self.train.learner == "native" and self.train.device not in ("auto", "cpu"):
            problems.append(
                f"train.device: {self.train.device} needs PyTorch's learner, and train.learner is native; set"
                " train.learner to auto, or train.device to cpu"
            )
        for name in {*BUILT_IN_TERMS, *self.optimizer.transforms} & set(self.ppo.terms):
            problems.append(f"ppo.terms.{name}: the name is used by another part; choose a different name")
        knobs = self.knobs()
        for name in self.schedules:
            if name not in knobs:
                problems.append(f"schedules.{name}: unknown knob{nearest(name, knobs)} (known: {', '.join(knobs)})")
        return problems

    def decisive(self) -> dict[str, Any]:
        """The settings that decide results, by dotted name: without threads and logs."""
        dump = self.model_dump(mode="json", exclude={"log": True, "train": {"threads"}, "rollout": {"workers"}})
        return dict(_flat(dump))

    def knobs(self) -> dict[str, float]:
        """Every number that schedules may change: `lr`, or `name.setting` of a term or gradient transform."""
        found: dict[str, float] = {}
        for section in (self.optimizer, self.ppo):
            found |= _knobs_of(section)
        for parts in (self.ppo.terms, self.optimizer.transforms):
            for name, part in parts.items():
                found |= {f"{name}.{key}": value for key, value in _knobs_of(part).items()}
        return found


BUILT_IN_TERMS = ("surrogate", "value", "entropy")


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of nested mappings by dotted name."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def _knobs_of(section: Section) -> dict[str, float]:
    fields = type(section).model_fields
    return {key: getattr(section, key) for key, field in fields.items() if KnobMark() in field.metadata}


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted` by ratio, of those up to a million and their counterparts."""
    small = [d for d in range(1, min(math.isqrt(number), 1_000_000) + 1) if number % d == 0]
    return min((*small, *(number // d for d in small)), key=lambda d: abs(math.log(d) - math.log(wanted)))


@cache
def key_types() -> dict[str, type[Section]]:
    """The section classes by name, in order."""
    return {
        name: field.annotation
        for name, field in Config.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
    }


def known_keys() -> dict[str, str]:
    """Every `section.key` with its description."""
    return {
        f"{section}.{key}": field.description or ""
        for section, cls in key_types().items()
        for key, field in cls.model_fields.items()
    }


def part_of(path: Sequence[str]) -> PartOf | PartsOf | None:
    """The validator of the part, or of the parts by name, that a path such as ("policy", "critic") leads to."""
    section, *rest = path
    fields = key_types()[section].model_fields if section in key_types() and rest else Config.model_fields
    field = fields.get(rest[0] if rest else section)
    found = [mark.func for mark in field.metadata if isinstance(mark, BeforeValidator)] if field else []
    return next((one for one in found if isinstance(one, PartOf | PartsOf)), None)
