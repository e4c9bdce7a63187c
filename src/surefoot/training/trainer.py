"""The trainer: collect, score, learn, report. Everything else attaches as a hook."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from surefoot.core.records import IterationReport, Progress
from surefoot.learning.advantage import Scorer
from surefoot.learning.learner import Learner
from surefoot.learning.schedules import Schedules
from surefoot.policies.policy import Policy
from surefoot.rollout.stepwise import StepwiseCollector
from surefoot.training.checkpoint import check_shapes
from surefoot.training.hooks import Hook


class Trainer:
    """Owns the parts of a run and its progress."""

    def __init__(
        self,
        policy: Policy,
        collector: StepwiseCollector,
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

    def state(self) -> dict[str, Any]:
        """All that a checkpoint needs to go on bit for bit (S15)."""
        scaler = self.scorer.reward_scaler
        return {
            "policy": dict(self.policy.state_dict()),
            "optimizer": self.learner.gradient.state(),
            "update": self.learner.update,
            "schedules": self.schedules.state(),
            "reward_scaler": None if scaler is None else scaler.state(),
            "collector": self.collector.state(),
            "progress": {"step": self.progress.step, "iteration": self.progress.iteration},
        }

    def load_state(self, state: dict[str, Any]) -> bool:
        """Go on from a checkpoint; checks that all of it fits before touching anything.

        False if the envs could not be put back where they were and start new episodes instead.
        """
        check_shapes(self.policy, state["policy"], "policy")
        self.learner.gradient.check_state(state["optimizer"])
        self.policy.load_state_dict(state["policy"])
        self.learner.gradient.load_state(state["optimizer"])
        self.learner.update = state["update"]
        self.schedules.load_state(state["schedules"])
        if self.scorer.reward_scaler is not None and state["reward_scaler"] is not None:
            self.scorer.reward_scaler.load_state(state["reward_scaler"])
        self.progress = Progress(total=self.progress.total, **state["progress"])
        return self.collector.load_state(state["collector"], self.policy)
