"""The collector protocol: independent of the engine and of where the policy runs."""

from typing import Protocol

from surefoot.core.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.rows import Rows


class Collector(Protocol):
    """Keeps the rows running from one rollout to the next."""

    rows: Rows

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row."""
