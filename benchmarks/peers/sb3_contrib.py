"""sb3-contrib's MaskablePPO for tasks with action masks, and its RecurrentPPO for tasks with memory."""

from typing import Any, ClassVar

from benchmarks.peers import PEERS, use_torch_threads
from benchmarks.peers.stable_baselines3 import Learning, settings
from benchmarks.tasks import Task
from surefoot.envs.tasks.registration import register_envs


@PEERS.register("sb3-contrib")
class StableBaselines3Contrib(Learning):
    """Envs in its own process, the same as ours; masks come from a method of theirs, for us from their infos."""

    title: ClassVar[str] = "sb3-contrib"
    needs: ClassVar[tuple[str, ...]] = ("sb3_contrib",)

    def __init__(self, task: Task, threads: int) -> None:
        from stable_baselines3.common.env_util import make_vec_env
        from stable_baselines3.common.vec_env import DummyVecEnv

        use_torch_threads(threads)
        register_envs()
        env = make_vec_env(task.env, n_envs=task.num_envs, vec_env_cls=DummyVecEnv)
        super().__init__(recurrent(env, task) if task.has_memory else _maskable(env, task))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """With neither it is Stable-Baselines3's PPO; it has none with both."""
        return task.has_masks != task.has_memory


def recurrent(env: Any, task: Task) -> Any:
    """As ours: an LSTM of the actor and one of the critic, its default, before the hidden layers."""
    from sb3_contrib import RecurrentPPO

    same = settings(task)
    memory = {"lstm_hidden_size": task.lstm, "n_lstm_layers": 1, "shared_lstm": False, "enable_critic_lstm": True}
    return RecurrentPPO("MlpLstmPolicy", env, **{**same, "policy_kwargs": {**same["policy_kwargs"], **memory}})


def _maskable(env: Any, task: Task) -> Any:
    from sb3_contrib import MaskablePPO

    return MaskablePPO("MlpPolicy", env, **settings(task))
