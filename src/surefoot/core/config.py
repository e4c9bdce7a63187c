"""The typed config: frozen sections, each key with its type, range, default and meaning in one place."""

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Activation = Literal["tanh", "relu", "elu", "silu", "leaky_relu", "gelu"]
Schedule = Literal["constant", "linear", "cosine"]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]


def _whole(value: Any) -> Any:
    """A count may be written as 1e6."""
    try:
        return int(float(value)) if isinstance(value, str) and float(value).is_integer() else value
    except ValueError:
        return value


Count = Annotated[int, BeforeValidator(_whole), Field(ge=1)]


def _from_commas(value: Any) -> Any:
    """The command line's "64,64" (or a lone 64) for a list."""
    if isinstance(value, str):
        return [part.strip() for part in value.strip("[]()").split(",") if part.strip()]
    return [value] if isinstance(value, int) else value


def _off_is_a_word(value: Any) -> Any:
    """YAML reads `off` as false."""
    return "off" if value is False else value


def _from_kind(value: Any) -> Any:
    """`encoder: conv` is short for `encoder: {kind: conv}`."""
    return {"kind": value} if isinstance(value, str) else value


Sizes = Annotated[tuple[Count, ...], BeforeValidator(_from_commas)]
Names = Annotated[tuple[str, ...], BeforeValidator(_from_commas)]
Decays = Annotated[tuple[Decay, Decay], BeforeValidator(_from_commas)]


class Section(BaseModel):
    """Frozen, refuses unknown keys, refuses NaN and infinity (but in env.kwargs, where they are written as such)."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants", validate_default=True
    )


class EnvConfig(Section):
    """Which environment."""

    id: str = Field("CartPole-v1", description="Gymnasium id, module:id, pettingzoo:MODULE or envpool:TASK")
    kwargs: dict[str, Any] = Field({}, description="arguments of the env's constructor")
    max_episode_steps: Count | None = Field(None, description="time limit instead of the env's own")
    truncation_as_termination: bool = Field(
        False, description="treat a time limit as the end of the world; only for envs without final observations"
    )


class EncoderConfig(Section):
    """How one observation becomes features."""

    kind: str = Field("auto", description="auto, identity, mlp, conv, dict or a registered name")
    layers: Sizes = Field((64,), description="mlp: hidden sizes")
    channels: Sizes = Field((16, 32), description="conv: channels of each layer")
    kernels: Sizes = Field((4, 3), description="conv: kernel sizes")
    strides: Sizes = Field((2, 2), description="conv: strides")
    features: Count = Field(64, description="conv: size of the output")

    @model_validator(mode="after")
    def _same_length(self) -> "EncoderConfig":
        if not len(self.channels) == len(self.kernels) == len(self.strides):
            raise ValueError("channels, kernels and strides need the same number of entries")
        return self


Encoder = Annotated[EncoderConfig, BeforeValidator(_from_kind)]


class MemoryConfig(Section):
    """What the policy carries from step to step."""

    kind: str = Field("none", description="none, gru, lstm or a registered name")
    hidden_size: Count = Field(64, description="size of the hidden state")
    layers: Count = Field(1, description="layers of cells")
    shared: bool = Field(
        False, description="actor and critic share encoder and memory but not the trunk (policy.share_trunk: all three)"
    )


Memory = Annotated[MemoryConfig, BeforeValidator(_from_kind)]


class PolicyConfig(Section):
    """Networks, action distribution and critic."""

    encoder: Encoder = Field(EncoderConfig(), description="encoder of the observation")
    encoders: dict[str, Encoder] = Field({}, description="dict observations: encoder of each key")
    memory: Memory = Field(MemoryConfig(), description="memory between encoder and trunk")
    hidden: Sizes = Field((64, 64), description="trunk between encoder and heads")
    activation: Activation = Field("tanh", description="nonlinearity of encoders and trunks")
    share_trunk: bool = Field(False, description="actor and critic share encoder, memory and trunk")
    orthogonal_init: bool = Field(True, description="orthogonal init (sqrt 2, 0.01, 1); else torch's")
    distribution: str = Field("auto", description="auto: gaussian or categorical by action space")
    std: Literal["learned", "fixed", "state"] = Field("learned", description="kind of Gaussian std")
    log_std: float = Field(0.0, description="initial log of the std")
    log_std_groups: dict[str, float] = Field(
        {}, description="initial log-std of slices of the action, e.g. {'3:9': -0.7}"
    )
    std_floor: Positive = Field(1e-3, description="the std never falls below this")
    action_bounds: Literal["clip", "rescale"] = Field(
        "clip", description="Gaussian to bounded action: clip, or rescale [-1, 1] then clip"
    )
    critic: str = Field("scalar", description="kind of critic")
    critic_obs: Names = Field((), description="observation keys only the critic sees")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32", description="bfloat16 runs encoders and trunks under autocast"
    )

    @field_validator("log_std_groups")
    @classmethod
    def _slices(cls, groups: dict[str, float]) -> dict[str, float]:
        for key in groups:
            start, colon, stop = key.partition(":")
            if not colon or not start.isdigit() or not stop.isdigit() or int(start) >= int(stop):
                raise ValueError(f"'{key}' is no slice; write 'start:stop' such as '0:3'")
        return groups


class RolloutConfig(Section):
    """How experience is collected."""

    num_envs: Count = Field(8, description="environments side by side")
    num_steps: int = Field(256, ge=2, description="steps of each environment in a rollout, at least 2")
    sequence_length: Count = Field(24, description="steps through which a policy with memory is trained")
    engine: str = Field(
        "auto",
        description="who steps the environments: native (C++ threads), local (this process), processes; auto: native"
        " where the core knows the environment, else local",
    )
    workers: int = Field(0, ge=0, description="native: threads, processes: processes; 0: one a core")
    groups: int = Field(
        0, ge=0, description="parts of the rows, one inferred while the others step; 0: 2 in processes from 32 envs up"
    )
    step_timeout_s: Positive = Field(60.0, description="processes: an env call that takes longer hangs, and is ended")
    max_restarts: int = Field(10, ge=0, description="processes: restarts within an hour; one more saves and stops")

    @property
    def size(self) -> int:
        """Transitions in a rollout of single-agent envs."""
        return self.num_envs * self.num_steps


class PPOConfig(Section):
    """The algorithm."""

    gamma: Fraction = Field(0.99, description="discount")
    gae_lambda: Fraction = Field(0.95, description="lambda of generalized advantage estimation")
    epochs: Count = Field(10, description="passes over a rollout")
    batch_size: Count = Field(64, description="samples in a minibatch; divides the rollout")
    micro_batch_size: Count | None = Field(
        None, description="accumulate gradients over pieces of a minibatch this large"
    )
    clip: Positive = Field(0.2, description="clip range of the probability ratio")
    clip_schedule: Schedule = Field("constant", description="schedule of clip")
    clip_value: Positive | None = Field(
        None, description="clip range of the value loss, in units of the return's std if normalized"
    )
    entropy_coef: NonNegative = Field(0.0, description="weight of the entropy bonus")
    entropy_schedule: Schedule = Field("constant", description="schedule of entropy_coef")
    value_coef: NonNegative = Field(0.5, description="weight of the critic's loss")
    max_grad_norm: Positive | None = Field(0.5, description="clip of the global gradient norm")
    target_kl: Positive | None = Field(None, description="stop the update above this KL")
    advantage_norm: Literal["rollout", "minibatch", "none"] = Field(
        "rollout", description="over what advantages are normalized"
    )
    sequence_state: Literal["stored", "recomputed"] = Field(
        "stored", description="memory at the start of a training sequence: as it was, or recomputed every epoch"
    )
    burn_in: int = Field(
        0, ge=0, description="steps before a sequence from which every epoch recomputes the memory it starts with"
    )


class OptimizerConfig(Section):
    """The optimizer and its learning rate."""

    algorithm: Literal["adam", "adamw"] = Field("adam", description="optimizer")
    lr: Positive = Field(3e-4, description="learning rate at the start")
    lr_schedule: Literal["constant", "linear", "cosine", "kl_adaptive"] = Field(
        "constant", description="schedule of lr; kl_adaptive steers it toward desired_kl"
    )
    schedule_floor: Fraction = Field(0.1, description="where cosine schedules end, as a share")
    desired_kl: Positive = Field(0.01, description="KL that kl_adaptive aims at")
    adam_eps: Positive = Field(1e-5, description="epsilon of Adam")
    betas: Decays = Field((0.9, 0.999), description="Adam's decay rates")
    weight_decay: NonNegative = Field(0.0, description="decoupled with adamw, L2 with adam")


class NormalizeConfig(Section):
    """Running normalization."""

    obs: bool = Field(False, description="normalize observations by running moments")
    obs_clip: Positive = Field(10.0, description="clip of normalized observations")
    reward: bool = Field(False, description="scale rewards by the std of the discounted return")
    reward_clip: Positive = Field(10.0, description="clip of scaled rewards")
    returns: bool = Field(False, description="the critic learns normalized returns (PopArt)")
    return_stats: Literal["current", "previous"] = Field(
        "current", description="whether an update's statistics include its own rollout"
    )


class TrainConfig(Section):
    """How long, how often to save and evaluate."""

    steps: Count = Field(100_000, description="environment steps in all")
    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(0, description="seed of everything")
    checkpoint_every: Count = Field(100_000, description="steps between checkpoints")
    keep_checkpoints: Count = Field(3, description="periodic checkpoints kept")
    eval_every: int = Field(0, ge=0, description="steps between evaluations; 0: at the end only")
    eval_episodes: int = Field(10, ge=0, description="episodes of an evaluation; 0: never evaluate")
    max_skipped_steps: Count = Field(
        10, description="gradient steps in a row that are not finite; then weights go back to the last good ones"
    )
    max_rollbacks: int = Field(
        3, ge=0, description="times to go back, until 100 good iterations are behind; one more ends the run"
    )
    threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="threads of learning, of the core and of torch, as far as there is work for them; 0: one a core",
    )


class LogConfig(Section):
    """What is written and shown."""

    console: Annotated[Literal["auto", "live", "plain", "off"], BeforeValidator(_off_is_a_word)] = Field(
        "auto", description="auto: live on a terminal, plain lines elsewhere"
    )
    tensorboard: bool = Field(True, description="write TensorBoard events")
    wandb: bool = Field(False, description="log to Weights & Biases (extra wandb); offline with WANDB_MODE=offline")
    wandb_project: str = Field("surefoot", min_length=1, description="W&B project")
    log_every: Count = Field(1, description="iterations between metric records")


class Config(Section):
    """Everything that defines a run."""

    env: EnvConfig = EnvConfig()
    policy: PolicyConfig = PolicyConfig()
    rollout: RolloutConfig = RolloutConfig()
    ppo: PPOConfig = PPOConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    normalize: NormalizeConfig = NormalizeConfig()
    train: TrainConfig = TrainConfig()
    log: LogConfig = LogConfig()

    def cross_problems(self) -> list[str]:
        """What is wrong between sections; each key is fine by itself."""
        problems = []
        size, batch = self.rollout.size, self.ppo.batch_size
        if size % batch:
            problems.append(
                f"ppo.batch_size: {batch} does not divide the rollout of {size} steps (rollout.num_envs x"
                f" rollout.num_steps); nearest that does: {nearest_divisor(size, batch)}"
            )
        micro = self.ppo.micro_batch_size
        if micro is not None and micro > batch:
            problems.append(f"ppo.micro_batch_size: {micro} is larger than ppo.batch_size {batch}")
        return problems


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted` by ratio, of those up to a million and their counterparts."""
    small = [d for d in range(1, min(math.isqrt(number), 1_000_000) + 1) if number % d == 0]
    return min((*small, *(number // d for d in small)), key=lambda d: abs(math.log(d) - math.log(wanted)))


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
