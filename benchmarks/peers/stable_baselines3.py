"""Stable-Baselines3's PPO as its users run it, with envs in its process or one process an env."""

import time
from typing import Any, ClassVar

from benchmarks import tasks
from benchmarks.peers import PEERS, use_torch_threads
from benchmarks.tasks import Task
from surefoot.benchmark.subject import Window


class Learning:
    """Anything with Stable-Baselines3's `learn`; its callbacks tell when a rollout begins and ends."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._size: int = model.n_envs * model.n_steps
        self._clock: Any = _rollout_clock()

    def run(self, iterations: int) -> Window:
        """One call of `learn`; its envs reset in the same step, so that every step it counts is executed."""
        self._clock.rollout_s, before = 0.0, self._model.num_timesteps
        began = time.perf_counter()
        self._model.learn(iterations * self._size, callback=self._clock, reset_num_timesteps=before == 0)
        total_s = time.perf_counter() - began
        steps = self._model.num_timesteps - before
        return Window(iterations, steps, self._clock.rollout_s, total_s - self._clock.rollout_s)

    def close(self) -> None:
        """Close the envs."""
        self._model.get_env().close()


class StableBaselines3(Learning):
    """PPO with some kind of vector env."""

    needs: ClassVar[tuple[str, ...]] = ("stable_baselines3",)

    def __init__(self, task: Task, threads: int) -> None:
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env

        use_torch_threads(threads)
        env = make_vec_env(task.env, n_envs=task.num_envs, vec_env_cls=self._vec_env())
        super().__init__(PPO("MlpPolicy", env, **settings(task)))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Its PPO knows neither masks nor memory."""
        return not task.has_masks and not task.has_memory

    def _vec_env(self) -> Any:
        raise NotImplementedError


@PEERS.register("sb3")
class StableBaselines3InProcess(StableBaselines3):
    """Envs in its own process, its default."""

    title: ClassVar[str] = "SB3 DummyVecEnv"

    def _vec_env(self) -> Any:
        from stable_baselines3.common.vec_env import DummyVecEnv

        return DummyVecEnv


@PEERS.register("sb3-subproc")
class StableBaselines3Processes(StableBaselines3):
    """One process an env."""

    title: ClassVar[str] = "SB3 SubprocVecEnv"

    def _vec_env(self) -> Any:
        from stable_baselines3.common.vec_env import SubprocVecEnv

        return SubprocVecEnv


def settings(task: Task) -> dict[str, Any]:
    """The task in Stable-Baselines3's words."""
    from torch import nn

    layers = list(task.hidden)
    activations = {"tanh": nn.Tanh, "relu": nn.ReLU}
    return {
        **{"n_steps": task.num_steps, "n_epochs": task.epochs, "batch_size": task.batch_size},
        **{"learning_rate": tasks.LEARNING_RATE, "gamma": tasks.GAMMA, "gae_lambda": tasks.GAE_LAMBDA},
        **{"clip_range": tasks.CLIP, "vf_coef": tasks.VALUE_COEF, "max_grad_norm": tasks.MAX_GRAD_NORM},
        "policy_kwargs": {
            "net_arch": {"pi": layers, "vf": layers},
            "activation_fn": activations[task.activation],
            "optimizer_kwargs": {"eps": tasks.ADAM_EPS},
        },
        "device": "cpu",
    }


def _rollout_clock() -> Any:
    """A callback that adds up the time between the beginnings and the ends of rollouts."""
    from stable_baselines3.common.callbacks import BaseCallback

    class RolloutClock(BaseCallback):  # type: ignore[misc]
        rollout_s = 0.0

        def _on_rollout_start(self) -> None:
            self._began = time.perf_counter()

        def _on_rollout_end(self) -> None:
            self.rollout_s += time.perf_counter() - self._began

        def _on_step(self) -> bool:
            return True

    return RolloutClock()
