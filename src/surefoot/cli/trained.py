"""Loads a trained agent: from a model file, a run directory or the zoo."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.errors import CheckpointError, CheckpointMismatchError, EnvError, UnknownEnvError
from surefoot.zoo import PREFIX, zoo_entries

if TYPE_CHECKING:
    from surefoot.api import PPO


def load_agent(model: str | Path, env: str | None, trust: bool) -> "tuple[PPO, Path]":
    """The agent and its file; `surefoot.models` says what names a model."""
    _refuse_missing(str(model))  # before torch is imported
    from surefoot.api import PPO
    from surefoot.models import find_model

    return PPO.load(model, env, trust=trust), find_model(model).file


@contextmanager
def or_in_python(model: str | Path, call: str, env: str | None = None) -> Iterator[None]:
    """Objects that were passed to PPO are in no file: where one is missing, say the Python that does the same."""
    load = f"in Python: PPO.load({str(model)!r}"
    try:
        yield
    except UnknownEnvError as error:
        if env is not None:
            raise
        raise EnvError(
            f"{error}; if the environment was passed to PPO as an object, do it {load}, env=YOUR_ENV).{call}"
        ) from error
    except CheckpointMismatchError as error:
        raise CheckpointError(
            f"the weights of {model} are not those of the policy that its config describes, usually because an encoder"
            f" or a policy was passed to PPO as an object; do it {load}, encoder=YOUR_ENCODER).{call}, or pass"
            " policy=YOUR_POLICY"
        ) from error


def _refuse_missing(model: str) -> None:
    if not model.startswith(PREFIX) and not Path(model).exists():
        remedy = f"did you mean {PREFIX}{model}?" if model in zoo_entries() else "pass a run, a model file or zoo:NAME"
        raise CheckpointError(f"{model} does not exist; {remedy}")
