"""The limit of `bench rollout`: only the dynamics of the rollouts that the native engine collects."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.benchmark.configured import Training
from surefoot.benchmark.window import Window
from surefoot.data.records import Rollout
from surefoot.envs.engines.native import NativeEngine
from surefoot.errors import NativeError
from surefoot.policies.policy import Policy
from surefoot.settings.config import Config


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
