"""The trainer: collect, score, learn, report. Everything else attaches as a hook."""

import time
from collections.abc import Callable
from dataclasses import replace

from surefoot.data.records import IterationReport, Progress
from surefoot.learning.execution import Execution
from surefoot.learning.learner import Learner
from surefoot.learning.schedules import Schedules
from surefoot.learning.scorer import Scorer
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.storage.state import Stateful
from surefoot.training.hook_group import HookGroup
from surefoot.training.stateful import PolicyState, stateful_of


class Trainer:
    """Owns the objects of the training loop and its progress."""

    def __init__(
        self,
        policy: Policy,
        collector: Collector,
        scorer: Scorer,
        learner: Learner,
        schedules: Schedules,
        total: int,
        execution: Execution | None = None,
    ) -> None:
        self.policy, self.collector, self.scorer = policy, collector, scorer
        self.policy_state = PolicyState(policy)
        self.learner, self.schedules, self.execution = learner, schedules, execution or Execution()
        self.hooks = HookGroup({})
        self.progress = Progress(0, total)

    def set_total(self, steps: int) -> None:
        """Change the total number of steps."""
        self.progress = replace(self.progress, total=steps)

    def train(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Iterate until all steps are done or a stop is requested; an iteration is always completed."""
        with self.execution.learning():  # around all: changing torch's threads back and forth costs time
            while not self.progress.is_done and not should_stop():
                self.hooks.after_iteration(self.iterate())

    # tour: iterate
    def iterate(self) -> IterationReport:
        """Collect, score, learn, report."""
        self.hooks.before_rollout()
        began = time.perf_counter()
        knobs = self.schedules.at(self.progress)
        with self.execution.collecting():
            rollout = self.collector.collect(self.policy)
        collected = time.perf_counter()
        rollout = self.hooks.after_rollout(rollout)
        with self.execution.learning():
            targets = self.scorer.score(rollout, self.policy.critic)
            learned = self.learner.learn(rollout, targets, knobs)
        self.schedules.observe(learned)
        self.learner.objective.observe(learned)
        self.progress = self.progress.advance(rollout.num_steps)
        rollout_s, learn_s = collected - began, time.perf_counter() - collected
        return IterationReport(self.progress, rollout.stats, learned, rollout_s, learn_s)

    # tour: end

    def stateful(self) -> dict[str, Stateful]:
        """Everything that has state, by its name in checkpoints (S15, docs/semantics.md)."""
        return stateful_of(self)
