"""A member takes over the state of a better one: the trainer that it is loaded into keeps its own settings."""

from collections.abc import Mapping
from typing import Any, Literal

from surefoot.envs.protocol.parameters import AGENT_PARAMETERS
from surefoot.storage.saved import reading
from surefoot.storage.state import load_states
from surefoot.training.trainer import Trainer

TAKEN = ("policy", "objective", "schedules", "scorer", AGENT_PARAMETERS)
"""Weights with their normalizers, and what terms, schedules and the scorer have learned."""


def take_over(
    trainer: Trainer,
    donor: Mapping[str, Any],
    own: Mapping[str, Any] | None,
    optimizer: Literal["reset", "copy"],
) -> None:
    """Load the donor's state into a new trainer, which was built from the member's changed config.

    States hold no settings, so the changed ones stay. Counters and what hooks froze are the member's own; one that
    failed has none, and counts on from the donor's. Rows start new episodes with new hidden states, and with their own
    randomness.
    """
    counted = donor if own is None else own
    parts = trainer.parts()
    taken = (*TAKEN, "gradient") if optimizer == "copy" else TAKEN  # a new trainer has neither moments nor steps
    with reading("the checkpoint of the donor"):
        load_states({name: parts[name] for name in taken}, donor)
    with reading("the checkpoint of the member"):
        load_states({name: parts[name] for name in ("progress", "frozen")}, counted)
    trainer.scorer.forget_running()
    rows = trainer.collector.rows
    rows.step = counted["collector"]["step"]
    envs = donor["collector"]["envs"] or {}
    rows.env.restore_parameters(donor["collector"].get("parameters") or envs.get("parameters", {}))
    rows.restart()
