"""What `bench peers` compares at: the same numbers on every side."""

from dataclasses import dataclass
from typing import Any

from surefoot.settings.config import Config
from surefoot.settings.layers import build_config

LEARNING_RATE, GAMMA, GAE_LAMBDA, CLIP, VALUE_COEF, MAX_GRAD_NORM = 3e-4, 0.99, 0.95, 0.2, 0.5, 0.5
ADAM_EPS = 1e-5


@dataclass(frozen=True)
class Task:
    """One comparison; actor and critic are separate networks of `hidden` layers each."""

    name: str
    env: str
    num_envs: int
    num_steps: int
    epochs: int
    num_minibatches: int
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    has_masks: bool = False
    lstm: int = 0
    """Cells of an LSTM before the hidden layers, one of the actor and one of the critic; 0: no memory."""

    @property
    def title(self) -> str:
        """For tables."""
        network = (f"LSTM {self.lstm}, " if self.has_memory else "") + "-".join(map(str, self.hidden))
        env = self.env.rpartition(":")[2]
        return (
            f"{env}, {self.num_envs} x {self.num_steps}, {self.epochs} epochs, {self.num_minibatches} minibatches,"
            f" {network} {self.activation}"
        )

    @property
    def has_memory(self) -> bool:
        """Whether policies remember."""
        return self.lstm > 0

    @property
    def batch_size(self) -> int:
        """Samples in a minibatch."""
        return self.num_envs * self.num_steps // self.num_minibatches

    def config(self, engine: str, threads: int) -> Config:
        """Surefoot's side; no preset, so that nothing but what is written here differs from the defaults."""
        settings: dict[str, Any] = {
            "env": {"id": self.env},
            "policy": {"hidden": self.hidden, "activation": self.activation},
            "rollout": {"num_envs": self.num_envs, "num_steps": self.num_steps, "engine": engine},
            "ppo": {
                **{"epochs": self.epochs, "batch_size": self.batch_size, "clip": CLIP, "value_coef": VALUE_COEF},
                **{"gamma": GAMMA, "gae_lambda": GAE_LAMBDA, "max_grad_norm": MAX_GRAD_NORM},
                "advantage_norm": "minibatch",  # as the peers do
            },
            "optimizer": {"lr": LEARNING_RATE, "adam_eps": ADAM_EPS},
            "train": {"threads": threads, "steps": 10**12},
        }
        return build_config(settings, self._memory() if self.has_memory else {})

    def _memory(self) -> dict[str, Any]:
        return {
            "policy.memory": {"kind": "lstm", "hidden_size": self.lstm, "layers": 1, "shared": False},
            # As sb3-contrib does: gradients reach back to the start of the episode or of the rollout.
            "rollout.sequence_length": self.num_steps,
        }


TASKS = {
    task.name: task
    for task in (
        Task("cartpole-8", "CartPole-v1", 8, 128, 4, 4),
        Task("cartpole-64", "CartPole-v1", 64, 128, 4, 4),
        Task("halfcheetah-8", "HalfCheetah-v5", 8, 256, 10, 32),
        Task("halfcheetah-64", "HalfCheetah-v5", 64, 64, 4, 4),
        Task("ant-64", "Ant-v5", 64, 64, 4, 4),
        Task("humanoid-16", "Humanoid-v5", 16, 64, 4, 4, (512, 512, 512), "relu"),
        Task("masked-16", "benchmarks.masked_choice:MaskedChoice-v0", 16, 128, 4, 4, has_masks=True),
        Task("cartpole-memory-8", "CartPoleNoVel-v1", 8, 128, 4, 4, (64,), lstm=64),
    )
}
