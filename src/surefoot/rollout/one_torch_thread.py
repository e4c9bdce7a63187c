"""Torch with one thread while envs keep all cores busy: threads per phase, so that nobody waits for a core."""

from surefoot.core.records import Rollout
from surefoot.core.torch_threads import one_torch_thread
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector


class OneTorchThread:
    """A collector around another one."""

    def __init__(self, collector: Collector) -> None:
        self._collector, self.rows = collector, collector.rows

    def collect(self, policy: Policy) -> Rollout:
        """T steps of every row; torch has its threads back afterwards."""
        with one_torch_thread():
            return self._collector.collect(policy)
