"""skrl's PPO with its sequential trainer, over Gymnasium's vector env."""

import time
from typing import Any, ClassVar

import gymnasium as gym
import torch
from gymnasium.vector import AutoresetMode
from torch import nn

from benchmarks import tasks
from benchmarks.peers import PEERS, use_torch_threads
from benchmarks.peers.envpool_loop import network
from benchmarks.tasks import Task
from surefoot.benchmark.subject import Window


@PEERS.register("skrl")
class SkrlPPO:
    """Its users write the networks; these are those of the other sides. It can only normalize advantages at once."""

    title: ClassVar[str] = "skrl"
    needs: ClassVar[tuple[str, ...]] = ("skrl",)

    def __init__(self, task: Task, threads: int) -> None:
        from skrl.envs.wrappers.torch import wrap_env
        from skrl.trainers.torch import SequentialTrainer

        use_torch_threads(threads)
        options = {"autoreset_mode": AutoresetMode.SAME_STEP}
        envs = gym.make_vec(task.env, task.num_envs, "sync", vector_kwargs=options)
        self._task, self._env = task, wrap_env(envs, wrapper="gymnasium", verbose=False)
        self._agent = _agent(self._env, task)
        self._trainer: Any = SequentialTrainer(
            env=self._env,
            agents=self._agent,
            cfg={"disable_progressbar": True, "close_environment_at_exit": False, "headless": True},
        )
        for group in self._agent.optimizer.param_groups:
            group["eps"] = tasks.ADAM_EPS
        self._learn_s = 0.0
        self._update, self._agent.update = self._agent.update, self._timed_update

    @classmethod
    def fits(cls, task: Task) -> bool:
        """It knows no masks; its recurrent PPO, which is another agent, takes no part."""
        return not task.has_masks and not task.has_memory

    def run(self, iterations: int) -> Window:
        """Its trainer for so many rollouts; the envs go on from where they were."""
        self._learn_s, self._trainer.cfg.timesteps = 0.0, iterations * self._task.num_steps
        began = time.perf_counter()
        self._trainer.train()
        total_s = time.perf_counter() - began
        steps = iterations * self._task.num_steps * self._task.num_envs
        return Window(iterations, steps, total_s - self._learn_s, self._learn_s)

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def _timed_update(self, **when: int) -> None:
        began = time.perf_counter()
        self._update(**when)
        self._learn_s += time.perf_counter() - began


def _agent(env: Any, task: Task) -> Any:
    from skrl.agents.torch.ppo import PPO
    from skrl.memories.torch import RandomMemory

    return PPO(
        models=_models(env, task),
        memory=RandomMemory(memory_size=task.num_steps, num_envs=task.num_envs, device="cpu"),
        observation_space=env.observation_space,
        action_space=env.action_space,
        device="cpu",
        cfg=settings(task),
    )


def settings(task: Task) -> dict[str, Any]:
    """The task in skrl's words."""
    return {
        **{"rollouts": task.num_steps, "learning_epochs": task.epochs, "mini_batches": task.num_minibatches},
        **{"learning_rate": tasks.LEARNING_RATE, "discount_factor": tasks.GAMMA, "gae_lambda": tasks.GAE_LAMBDA},
        **{"ratio_clip": tasks.CLIP, "value_clip": 0.0, "value_loss_scale": tasks.VALUE_COEF},
        **{"grad_norm_clip": tasks.MAX_GRAD_NORM, "entropy_loss_scale": 0.0, "kl_threshold": 0.0},
        "experiment": {"write_interval": 0, "checkpoint_interval": 0},
    }


def _models(env: Any, task: Task) -> dict[str, Any]:
    """Policy and value, each a network of the task."""
    from skrl.models.torch import CategoricalMixin, DeterministicMixin, GaussianMixin, Model

    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}

    class Choosing(CategoricalMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(self, **spaces)
            CategoricalMixin.__init__(self)
            self.network = network(self.num_observations, self.num_actions, 0.01, task)

        def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Any, dict[str, Any]]:
            return self.network(inputs["observations"]), {}

    class Moving(GaussianMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self, clip_actions=True)
            self.network = network(self.num_observations, self.num_actions, 0.01, task)
            self.log_std = nn.Parameter(torch.zeros(self.num_actions))

        def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Any, dict[str, Any]]:
            return self.network(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.network = network(self.num_observations, 1, 1.0, task)

        def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Any, dict[str, Any]]:
            return self.network(inputs["observations"]), {}

    policy = Choosing if isinstance(env.action_space, gym.spaces.Discrete) else Moving
    return {"policy": policy(), "value": Value()}
