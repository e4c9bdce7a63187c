"""Small sweeps for the tests."""

from typing import Any

RUN: dict[str, Any] = {
    "env": {"id": "CartPole-v1"},
    "policy": {"hidden": [8]},
    "rollout": {"num_envs": 4, "num_steps": 16},
    "ppo": {"batch_size": 32, "epochs": 1},
    "train": {"steps": 256, "eval_every": 64, "threads": 1},
    "log": {"tensorboard": False},
}
LR = {"optimizer.lr": {"low": 1e-4, "high": 1e-2, "scale": "log"}}


def raw(sweep: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    """The content of a config file with a section `sweep`."""
    changed = {name: {**RUN.get(name, {}), **section} for name, section in sections.items()}
    return {"preset": "none", **RUN, **changed, "sweep": {"tunables": LR, "episodes": 2, **sweep}}
