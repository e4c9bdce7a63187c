"""The collector protocol: independent of the engine and of where the policy runs."""

from typing import Protocol

from surefoot.data.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.rows import Rows


class Collector(Protocol):
    """Keeps the rows running from one rollout to the next."""

    rows: Rows

    @property
    def description(self) -> str:
        """How rollouts are collected, and why, in one line."""

    @property
    def is_native(self) -> bool:
        """Whether the core of this process collects whole rollouts."""

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row."""
