"""RSL-RL's PPO under its own runner, over Gymnasium's vector env."""

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from benchmarks import tasks
from benchmarks.peers import PEERS, use_torch_threads
from benchmarks.tasks import Task
from surefoot.benchmark.subject import Window


@PEERS.register("rsl-rl")
class RslRlPPO:
    """Only continuous actions. Its runner tells how long each phase took; nothing is logged or saved."""

    title: ClassVar[str] = "RSL-RL"
    needs: ClassVar[tuple[str, ...]] = ("rsl_rl",)

    def __init__(self, task: Task, threads: int) -> None:
        from rsl_rl.runners import OnPolicyRunner

        use_torch_threads(threads)
        options = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self._envs = _adapter()(gym.make_vec(task.env, task.num_envs, "sync", vector_kwargs=options))
        self._runner: Any = OnPolicyRunner(self._envs, settings(task), log_dir=None, device="cpu")
        for group in self._runner.alg.optimizer.param_groups:
            group["eps"] = tasks.ADAM_EPS
        self._size = task.num_envs * task.num_steps
        self._phases: list[tuple[float, float]] = []
        self._runner.logger.log = self._keep_times

    @classmethod
    def fits(cls, task: Task) -> bool:
        """It has Gaussian policies only, here without memory."""
        return not (task.has_masks or task.has_memory) and isinstance(_action_space(task), gym.spaces.Box)

    def run(self, iterations: int) -> Window:
        """Its runner for so many iterations; every step is executed, as envs reset in the same one."""
        self._phases.clear()
        self._runner.learn(iterations)
        rollout_s, learn_s = (sum(times) for times in zip(*self._phases, strict=True))
        return Window(iterations, iterations * self._size, rollout_s, learn_s)

    def close(self) -> None:
        """Close the envs."""
        self._envs.close()

    def _keep_times(self, collect_time: float, learn_time: float, **others: Any) -> None:
        self._phases.append((collect_time, learn_time))


def settings(task: Task) -> dict[str, Any]:
    """The task in RSL-RL's words."""
    network = {
        **{"class_name": "MLPModel", "hidden_dims": list(task.hidden), "activation": task.activation},
        "obs_normalization": False,
    }
    gaussian = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "log"}
    return {
        **{
            "num_steps_per_env": task.num_steps,
            "save_interval": 10**9,
            "check_for_nan": False,
            "logger": "tensorboard",
        },
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": gaussian},
        "critic": network,
        "algorithm": {
            **{"class_name": "PPO", "num_learning_epochs": task.epochs, "num_mini_batches": task.num_minibatches},
            **{"learning_rate": tasks.LEARNING_RATE, "gamma": tasks.GAMMA, "lam": tasks.GAE_LAMBDA},
            **{"clip_param": tasks.CLIP, "value_loss_coef": tasks.VALUE_COEF, "use_clipped_value_loss": False},
            **{"max_grad_norm": tasks.MAX_GRAD_NORM, "entropy_coef": 0.0, "schedule": "fixed"},
            "normalize_advantage_per_mini_batch": True,
        },
    }


def _action_space(task: Task) -> gym.Space[Any]:
    one = gym.make(task.env)
    one.close()
    return one.action_space


def _adapter() -> Any:
    """Gymnasium's vector env as RSL-RL wants envs; made here because its base class comes with the package."""
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict

    class Adapter(VecEnv):  # type: ignore[misc]
        device, max_episode_length = "cpu", 1000

        def __init__(self, envs: Any) -> None:
            self._envs, self.num_envs = envs, envs.num_envs
            self.cfg: dict[str, Any] = {}
            space = envs.single_action_space
            self.num_actions, self._bounds = space.shape[0], (space.low, space.high)
            self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
            self._keep(envs.reset()[0])

        def get_observations(self) -> Any:
            return self._obs

        def step(self, actions: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor, dict[str, Any]]:
            obs, reward, terminated, truncated, _ = self._envs.step(np.clip(actions.numpy(), *self._bounds))
            self._keep(obs)
            rewards, ended = torch.from_numpy(np.asarray(reward, np.float32)), torch.from_numpy(terminated | truncated)
            return self._obs, rewards, ended, {"time_outs": torch.from_numpy(truncated)}

        def close(self) -> None:
            self._envs.close()

        def _keep(self, obs: Any) -> None:
            self._obs = TensorDict({"policy": torch.from_numpy(np.asarray(obs, np.float32))}, [self.num_envs])

    return Adapter
