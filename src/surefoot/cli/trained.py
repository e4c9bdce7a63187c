"""Loads a trained agent: from a model file, a run directory or the zoo."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.errors import CheckpointError, CheckpointMismatchError, EnvError, SurefootError, UnknownEnvError
from surefoot.zoo import PREFIX, zoo_entries

if TYPE_CHECKING:
    from surefoot.api import PPO
    from surefoot.saved_run import SavedRun


def load_agent(model: str | Path, env: str | None, trust: bool) -> "tuple[PPO, Path]":
    """The agent and its file; `surefoot.models` says what names a model."""
    _refuse_missing(str(model))  # before torch is imported
    from surefoot.api import PPO
    from surefoot.models import find_model

    return PPO.load(model, env, trust=trust), find_model(model).file


@contextmanager
def or_in_python(model: str | Path, call: str, env: str | None = None) -> Iterator[None]:
    """Objects that were passed to PPO are in no file: where one is missing, say the Python that does the same."""
    try:
        yield
    except UnknownEnvError as error:
        if env is not None:
            raise
        also = ", encoder=YOUR_ENCODER" if _lacks_modules(model) else ""
        load = f"PPO.load({str(model)!r}, env=YOUR_ENV{also})"
        raise EnvError(
            f"{error}; if the environment{' and an encoder were' if also else ' was'} passed to PPO as"
            f" {'objects' if also else 'an object'}, do it in Python: {load}.{call}"
        ) from error
    except CheckpointMismatchError as error:
        also = "env=YOUR_ENV, " if env is None and _lacks_env(model) else ""
        raise CheckpointError(
            f"{_not_described(str(model))}{', and so was its environment' if also else ''}; do it in Python:"
            f" PPO.load({str(model)!r}, {also}encoder=YOUR_ENCODER).{call}, or pass policy=YOUR_POLICY"
        ) from error


@contextmanager
def or_started_in_python(start: str | None, env_id: str, steps: int) -> Iterator[None]:
    """The same for a model that a new run starts from (train.start_from)."""
    try:
        yield
    except CheckpointMismatchError as error:
        if start is None or not _lacks_modules(start):
            raise
        raise CheckpointError(
            f"{_not_described(start)}; do it in Python: PPO({env_id!r}, start_from={start!r},"
            f" encoder=YOUR_ENCODER).learn({steps}), or pass policy=YOUR_POLICY"
        ) from error


def _not_described(model: str) -> str:
    return (
        f"the weights of {model} are not those of the policy that its config describes, usually because an encoder or a"
        " policy was passed to PPO as an object"
    )


def _lacks_env(model: str | Path) -> bool:
    """Whether a model names an env that does not exist; without importing what it names."""
    from surefoot.envs.make import env_factory
    from surefoot.saved_run import untrusted_env

    try:
        config = _saved(model).config
        if not untrusted_env(config, False):
            env_factory(config.env.id, config.env)
    except UnknownEnvError:
        return True
    except SurefootError:
        pass
    return False


def _lacks_modules(model: str | Path) -> bool:
    """Whether the weights of a model are not those of the policy that its config describes."""
    from surefoot.compose import build_saved_policy
    from surefoot.storage.saved import reading
    from surefoot.storage.state import ModuleState, load_states

    try:
        saved = _saved(model)
        policy = build_saved_policy(saved.config, saved.specs, saved.state, saved.path)
        with reading(saved.path):
            load_states({"policy": ModuleState(policy, "policy")}, saved.state)
    except CheckpointMismatchError:
        return True
    except SurefootError:
        pass
    return False


def _saved(model: str | Path) -> "SavedRun":
    from surefoot.models import find_model
    from surefoot.saved_run import SavedRun
    from surefoot.training.checkpoint import read_checkpoint

    found = find_model(model)
    return SavedRun.of((found.file, read_checkpoint(found.file)), found.trusted(False))


def _refuse_missing(model: str) -> None:
    if not model.startswith(PREFIX) and not Path(model).exists():
        remedy = f"did you mean {PREFIX}{model}?" if model in zoo_entries() else "pass a run, a model file or zoo:NAME"
        raise CheckpointError(f"{model} does not exist; {remedy}")
