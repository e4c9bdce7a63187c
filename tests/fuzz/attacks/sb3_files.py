"""Damaged and rewritten files of Stable-Baselines3: refused with a typed error, or a finite agent."""

import io
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot import from_sb3
from surefoot.errors import SurefootError
from tests.fuzz.values import mutated

ENV = "Pendulum-v1"
_FIELDS = [f"{owner}.{part}" for owner in ("obs_rms", "ret_rms") for part in ("mean", "var", "count")]
_ARRAYS: list[Any] = [
    *(np.zeros(3), np.ones((3, 1)), np.full(3, np.nan), np.full(3, -1e300), np.zeros(3, object), np.zeros(3, ">i2")),
    *(
        np.zeros(0),
        np.zeros(3, complex),
        np.zeros(3, "M8[s]"),
        np.array("x"),
        -1,
        10**400,
        float("inf"),
        None,
        [0.0],
        "",
    ),
]
_TENSORS: list[Any] = [
    *(
        torch.zeros(1, 1).expand(2**20, 2**20),
        torch.zeros(8, 3).T,
        torch.zeros(0, 3),
        torch.zeros(()),
        torch.ones(8, 3),
    ),
    *(torch.full((8, 3), torch.nan), torch.zeros(8, 3, dtype=torch.int8), torch.zeros(8, 3).to_sparse(), [0.0], None),
    *(torch.zeros(8, 3, device="meta"), torch.zeros(8, 3, dtype=torch.bfloat16), torch.zeros(8, 4), {}, object),
]


def prepare(folder: Path) -> Path:
    """The files of an agent."""
    import stable_baselines3 as sb3
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    vector = VecNormalize(make_vec_env(ENV, 2, seed=0))
    sb3.PPO("MlpPolicy", vector, device="cpu", policy_kwargs={"net_arch": [8]}).save(folder / "agent.zip")
    vector.save(str(folder / "statistics.pkl"))
    return folder


def case(pick: random.Random, material: Path, folder: Path) -> None:
    """One of the two files is odd."""
    agent, statistics = folder / "agent.zip", folder / "statistics.pkl"
    for path in (agent, statistics):
        path.write_bytes((material / path.name).read_bytes())
    match pick.randrange(4):
        case 0:
            statistics.write_bytes(mutated(pick, statistics.read_bytes()))
        case 1:
            statistics.write_bytes(_odd_statistics(pick, statistics))
        case 2:
            _rewrite(agent, lambda policy: mutated(pick, policy))
        case _:
            _rewrite(agent, lambda policy: _odd_policy(pick, policy))
    try:
        found = from_sb3(agent, ENV, statistics)
    except SurefootError:
        return
    assert np.isfinite(found.predict(np.zeros((4, 3), np.float32))[0]).all()


def _odd_statistics(pick: random.Random, path: Path) -> bytes:
    with path.open("rb") as file:
        vector = pickle.load(file)
    vector.class_attributes, vector.returns = {}, np.zeros(2)
    owner, part = pick.choice(_FIELDS).split(".")
    setattr(getattr(vector, owner), part, pick.choice(_ARRAYS))
    return pickle.dumps(vector, pick.choice([2, 3, 4, 5]))


def _odd_policy(pick: random.Random, policy: bytes) -> bytes:
    tensors = torch.load(io.BytesIO(policy), weights_only=True)
    name = pick.choice(list(tensors))
    if pick.random() < 0.2:
        del tensors[name]
    else:
        tensors[name] = pick.choice(_TENSORS)
    data = io.BytesIO()
    torch.save(tensors, data)
    return data.getvalue()


def _rewrite(path: Path, change: Any) -> None:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, change(data) if name == "policy.pth" else data)
