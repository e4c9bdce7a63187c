"""What a run takes from trained models: the weights that it starts from (train.start_from), or a policy that stays."""

from pathlib import Path
from typing import Any

from surefoot.compose import Specs, build_policy, build_saved_policy
from surefoot.errors import CheckpointError, CheckpointMismatchError, ConfigError
from surefoot.models import Model, find_model
from surefoot.policies.policy import Policy
from surefoot.saved_run import SavedRun, differing, saved_setup
from surefoot.settings.config import Config
from surefoot.storage.saved import reading
from surefoot.storage.state import ModuleState, load_states
from surefoot.storage.trust import WANTS_TO_IMPORT, names_in
from surefoot.training.checkpoint import read_checkpoint
from surefoot.training.policy_only import policy_only

SETTING = "train.start_from"
_SAME = ("policy", "normalize")
"""Settings that determine what the weights and statistics of a model mean."""


def starting_point(config: Config, specs: Specs) -> SavedRun | None:
    """The policy-only state that a new run starts from, if its config names a model; it must fit the run."""
    name = config.train.start_from
    if name is None:
        return None
    model, source = find_model(name), f"{name} ({SETTING})"
    state = read_checkpoint(model.file)
    saved, theirs = _setup(state, model, config)
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
    state = policy_only(state, model.file) | {"config": config.model_dump(mode="json")}
    return SavedRun(source, state, config, specs)


def frozen_policy(name: str | Path, config: Config, specs: Specs) -> Policy:
    """The policy of a model, without gradients, for a run; it may observe fewer keys than the run's envs have."""
    model = find_model(name)
    state = read_checkpoint(model.file)
    saved, theirs = _setup(state, model, config)
    known = specs.obs if isinstance(specs.obs, dict) and isinstance(theirs.obs, dict) else {"": specs.obs}
    wanted = theirs.obs if isinstance(theirs.obs, dict) else {"": theirs.obs}
    if theirs.action != specs.action or any(known.get(key) != spec for key, spec in wanted.items()):
        raise CheckpointMismatchError(
            f"{name} was trained on {saved.env.id}, whose observation or action space differs from that of"
            f" {config.env.id}; choose a model with the same spaces"
        )
    policy = build_saved_policy(saved, theirs, state, model.file)
    with reading(model.file):
        load_states({"policy": ModuleState(policy, "policy")}, state)
    return policy.eval().requires_grad_(False)


def _setup(state: dict[str, Any], model: Model, config: Config) -> tuple[Config, Specs]:
    """The specs of a model and what its weights mean: hooks, sinks and the like of its run are not needed here."""
    settings = state.get("config")
    if isinstance(settings, dict):
        settings = {section: settings[section] for section in ("env", *_SAME) if section in settings}
    try:
        trusted = model.names | names_in(config.model_dump(mode="json"))
        return saved_setup({**state, "config": settings}, model.file, trusted)
    except CheckpointError as error:
        if WANTS_TO_IMPORT not in str(error):
            raise
        reason = str(error).partition(";")[0]
        raise CheckpointError(f"{reason}; name it in this run's config if you trust it") from error


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
