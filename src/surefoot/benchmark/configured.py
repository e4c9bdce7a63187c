"""Surefoot as configured: the subjects of `bench train`, `rollout` (with its limit) and `scaling`."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.benchmark.subject import Window
from surefoot.compose import Specs, build_env, build_policy, build_trainer
from surefoot.data.records import Rollout
from surefoot.envs.engines import Engine, engines
from surefoot.envs.engines.native import NativeEngine
from surefoot.envs.make import EnvSource
from surefoot.envs.protocol import VecEnv
from surefoot.errors import NativeError
from surefoot.policies.native_parts import NotNative
from surefoot.policies.native_plan import plan_policy
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config


class Training:
    """Rollout and learning."""

    def __init__(self, config: Config, source: EnvSource | None = None) -> None:
        self._env = build_env(config, source)
        policy = build_policy(config, Specs(self._env.obs_spec, self._env.action_spec))
        self._trainer = build_trainer(config, self._env, policy)
        reason = why_not_native(self._env, policy)
        if (
            reason and config.rollout.engine.kind == "native"
        ):  # the result of another engine must not appear under this name
            self._env.close()
            raise NativeError(f"not native: {reason}")
        self.engine = engine_name(self._env) if reason else "native"

    def run(self, iterations: int) -> Window:
        """Iterations of the trainer."""
        with self._trainer.execution.learning():  # as `Trainer.train` does
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
    """Only rollouts."""

    def run(self, iterations: int) -> Window:
        """Rollouts of the collector."""
        began, steps = time.perf_counter(), 0
        for _ in range(iterations):
            with self._trainer.execution.collecting():
                steps += self._trainer.collector.collect(self._trainer.policy).num_steps
        return Window(iterations, steps, time.perf_counter() - began, 0.0)


class Replaying(Training):
    """Collects rollouts untimed, then replays the same actions and resets from the same states, timed.

    The cost of a physics step depends on the state, so a fair limit needs exactly the states of the rollout.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        if not isinstance(self._env, NativeEngine):
            raise NativeError("only the native engine has a limit; set rollout.engine to native")
        self._engine = self._env

    def run(self, iterations: int) -> Window:
        """Rollouts; only the replay is timed."""
        steps, replay_s = 0, 0.0
        for _ in range(iterations):
            rollout, taken_s = self._replay_one()
            steps += rollout.num_steps
            replay_s += taken_s
        return Window(iterations, steps, replay_s, 0.0)

    def _replay_one(self) -> tuple[Rollout, float]:
        core = self._engine.core
        before = core.save()
        with self._trainer.execution.collecting():
            rollout = self._trainer.collector.collect(self._trainer.policy)
        after = core.save()
        actions = env_actions(rollout, self._trainer.policy)
        ended = (rollout.terminated | rollout.truncated).numpy()
        core.load(before)
        began = time.perf_counter()
        core.replay(actions, ended)
        taken_s = time.perf_counter() - began
        core.load(after)
        return rollout, taken_s


def env_actions(rollout: Rollout, policy: Policy) -> NDArray[Any]:
    """The env actions `[T, N, A]` in the core's format: float32, or int64 for discrete actions."""
    taken = policy.head.to_env(rollout.action.flatten(0, 1)).numpy().reshape(*rollout.reward.shape, -1)
    kind = np.float32 if np.issubdtype(taken.dtype, np.floating) else np.int64
    return np.ascontiguousarray(taken, dtype=kind)


def why_not_native(env: VecEnv, policy: Policy) -> str:
    """Why rollouts do not run in the core; empty if they do."""
    if not isinstance(env, NativeEngine):
        return (env.why_not_native if isinstance(env, Engine) else "") or "these envs have no native implementation"
    plan = plan_policy(policy)
    return plan.reason if isinstance(plan, NotNative) else ""


def engine_name(env: VecEnv) -> str:
    """The registered name of the engine; vector envs step themselves."""
    found = [name for name in engines.names() if type(env) is engines[name]]
    return found[0] if found else "its own"
