"""New runs: from the beginning, or from the weights and normalizers of a model (train.start_from)."""

from typing import Any

from surefoot.compose import Specs, build_policy, build_trainer, differing, saved_setup
from surefoot.core.config import Config
from surefoot.core.errors import CheckpointMismatchError, ConfigError
from surefoot.core.ranks import ALONE, Ranks
from surefoot.core.trust import names_in
from surefoot.envs.protocol import VecEnv
from surefoot.models import find_model
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.policy_only import policy_only, start_from
from surefoot.training.trainer import Trainer

SETTING = "train.start_from"
_SAME = ("policy", "normalize")
"""Settings that determine what the weights and statistics of a model mean."""


def new_trainer(config: Config, env: VecEnv, ranks: Ranks = ALONE) -> tuple[Trainer, Specs]:
    """The trainer of a new run."""
    specs = Specs(env.obs_spec, env.action_spec)
    state = starting_state(config, specs)
    trainer = build_trainer(config, env, build_policy(config, specs), ranks)
    if state is not None:
        start_from(trainer, state, _source(config))
    return trainer, specs


def starting_state(config: Config, specs: Specs) -> dict[str, Any] | None:
    """The policy-only state that a new run starts from, if its config names a model; it must fit the run."""
    name = config.train.start_from
    if name is None:
        return None
    model, source = find_model(name), _source(config)
    state = read_checkpoint(model.file)
    saved, theirs = saved_setup(state, model.file, model.names | names_in(config.model_dump(mode="json")))
    if theirs != specs:
        raise CheckpointMismatchError(
            f"{source} was trained on {saved.env.id}, whose observation or action space differs from that of"
            f" {config.env.id}; choose a model with the same spaces"
        )
    problems = [
        f"{setting}: {source} was trained with {old!r}, this run has {new!r}; use the value of the model"
        for setting, old, new in differing(saved, config, _SAME)
        if setting != "policy.encoder" or not _same_layers(saved, config, specs)
    ]
    if problems:
        raise ConfigError(problems)
    return policy_only(state, model.file) | {"config": config.model_dump(mode="json")}


def _same_layers(saved: Config, config: Config, specs: Specs) -> bool:
    """Whether two settings of a built-in encoder give the same layers.

    Kernels that are left out may be those that a model spells out, and without an image there are none.
    """
    encoders = saved.policy.encoder, config.policy.encoder
    if any(encoder.kind not in ("auto", "conv") for encoder in encoders):
        return False
    sections = [config.policy.model_copy(update={"encoder": encoder}) for encoder in encoders]
    old, new = (build_policy(config.model_copy(update={"policy": section}), specs) for section in sections)
    return repr(old) == repr(new)


def _source(config: Config) -> str:
    return f"{config.train.start_from} ({SETTING})"
