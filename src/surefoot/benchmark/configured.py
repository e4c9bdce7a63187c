"""Surefoot as configured: the subjects of `bench train`, `rollout` and `scaling`."""

import time

from surefoot.benchmark.window import Window
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.core.config import Config
from surefoot.envs.make import EnvSource


class Training:
    """Rollout and learning."""

    def __init__(self, config: Config, source: EnvSource | None = None) -> None:
        self._env = build_env(config, source)
        policy = build_policy(config, Specs(self._env.obs_spec, self._env.action_spec))
        self._trainer = build_trainer(config, self._env, policy)

    def run(self, iterations: int) -> Window:
        """Iterations of the trainer."""
        reports = [self._trainer.iterate() for _ in range(iterations)]
        return Window(
            iterations,
            sum(report.stats.num_steps for report in reports),
            sum(report.rollout_s for report in reports),
            sum(report.learn_s for report in reports),
        )

    def close(self) -> None:
        """Close the envs."""
        self._env.close()


class Collecting(Training):
    """Only the rollouts: what the engine does."""

    def run(self, iterations: int) -> Window:
        """Rollouts of the collector."""
        began, steps = time.perf_counter(), 0
        for _ in range(iterations):
            steps += self._trainer.collector.collect(self._trainer.policy).num_steps
        return Window(iterations, steps, time.perf_counter() - began, 0.0)
