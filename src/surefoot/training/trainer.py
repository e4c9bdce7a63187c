"""The trainer: collect, score, learn, report. Everything else attaches as a hook."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from surefoot.core.records import IterationReport, Progress
from surefoot.learning.advantage import Scorer
from surefoot.learning.learner import Learner
from surefoot.learning.schedules import Schedules
from surefoot.policies.policy import Policy
from surefoot.rollout.collector import Collector
from surefoot.training.hooks import Hook


class Trainer:
    """Owns the parts of a run and its progress."""

    def __init__(
        self,
        policy: Policy,
        collector: Collector,
        scorer: Scorer,
        learner: Learner,
        schedules: Schedules,
        total_steps: int,
    ) -> None:
        self.policy, self.collector, self.scorer = policy, collector, scorer
        self.learner, self.schedules = learner, schedules
        self.progress = Progress(0, total_steps)

    def set_total(self, steps: int) -> None:
        """Change how many steps the run has in all."""
        self.progress = replace(self.progress, total=steps)

    def train(self, hooks: Sequence[Hook] = (), should_stop: Callable[[], bool] = lambda: False) -> None:
        """Iterate until the steps are used up or somebody asks to stop; an iteration is never cut short."""
        while not self.progress.is_done and not should_stop():
            report = self.iterate()
            for hook in hooks:
                hook.after_iteration(report)

    # tour: iterate
    def iterate(self) -> IterationReport:
        """Collect, score, learn, report."""
        began = time.perf_counter()
        knobs = self.schedules.at(self.progress)
        rollout = self.collector.collect(self.policy)
        collected = time.perf_counter()
        targets = self.scorer.score(rollout)
        learned = self.learner.learn(rollout, targets, knobs)
        self.schedules.observe(learned)
        self.progress = self.progress.advance(rollout.num_steps)
        rollout_s, learn_s = collected - began, time.perf_counter() - collected
        return IterationReport(self.progress, rollout.stats, learned, rollout_s, learn_s)

    # tour: end
