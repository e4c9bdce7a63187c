"""Torch with one thread while envs keep all cores busy: threads per phase, so that nobody waits for a core."""

import torch

from surefoot.core.records import Rollout
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector


class OneTorchThread:
    """A collector around another one."""

    def __init__(self, collector: Collector) -> None:
        self._collector, self.rows = collector, collector.rows

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row; torch has its threads back afterwards."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return self._collector.collect(policy)
        finally:
            torch.set_num_threads(threads)
