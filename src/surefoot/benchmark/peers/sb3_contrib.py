"""sb3-contrib's MaskablePPO, for tasks with action masks."""

from typing import ClassVar

from surefoot.benchmark.peers import PEERS, use_torch_threads
from surefoot.benchmark.peers.stable_baselines3 import Learning, settings
from surefoot.benchmark.tasks import Task


@PEERS.register("sb3-contrib")
class MaskablePPO(Learning):
    """Its masks come from a method of the envs, ours from their infos; the envs are the same."""

    title: ClassVar[str] = "sb3-contrib MaskablePPO"
    needs: ClassVar[tuple[str, ...]] = ("sb3_contrib",)

    def __init__(self, task: Task, threads: int) -> None:
        import sb3_contrib
        from stable_baselines3.common.env_util import make_vec_env

        use_torch_threads(threads)
        env = make_vec_env(task.env, n_envs=task.num_envs)
        super().__init__(sb3_contrib.MaskablePPO("MlpPolicy", env, **settings(task)))

    @classmethod
    def fits(cls, task: Task) -> bool:
        """Without masks it is Stable-Baselines3's PPO."""
        return task.has_masks
