"""Checkpoints with a right checksum and wrong contents: refused with a typed error that changes nothing, or loaded.

A sound checkpoint is damaged entry by entry, signed with the project's own serializer, and loaded in every way:
`PPO.load` with evaluation and training, `surefoot resume`, and into an agent that has trained already.
"""

import atexit
import contextlib
import io
import math
import random
import shutil
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.api import PPO
from surefoot.cli.resume import go_on
from surefoot.errors import CheckpointError, SurefootError
from surefoot.storage.state import copied
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.run_directory import RunDirectory
from tests.training.states import assert_same

SMALL: dict[str, Any] = {
    "num_envs": 2,
    "num_steps": 8,
    "batch_size": 8,
    "epochs": 1,
    "hidden": 4,
    "eval_episodes": 0,
    "log": {"console": "off", "tensorboard": False},
}
AGENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native": (
        "CartPole-v1",
        {
            "memory": {"kind": "gru", "hidden_size": 3},
            "normalize": {"obs": True, "reward": True, "returns": True},
            "schedules": {"lr": "kl_adaptive"},
            "hooks": {"solved": {"kind": "stop_at_return", "value": 1e6}},
        },
    ),
    "local": ("Pendulum-v1", {"engine": "local", "normalize": {"reward": True}}),
    "masked": ("Probe-v0", {"engine": "local"}),
    "discrete": ("FrozenLake-v1", {"share_trunk": True}),
}
TRAP = "surefoot_fuzz_trap"
"""A module that is there to be imported, and must not be."""
MOST_WORK = 10_000
"""Steps beyond which a checkpoint asks for work, not for trouble."""

NUMBERS = (0, -1, 1, 2, 7, 0.5, -0.5, 1e300, 1e-320, 10**12, 2**31, 2**53, 2**63, 10**30, 10**400, math.nan, math.inf)
OTHERS = (
    None,
    True,
    False,
    "",
    "x",
    "1",
    "nan",
    "auto",
    [],
    {},
    [[]],
    [1, 2],
    {"a": 1},
    {"kind": "mlp"},
    f"{TRAP}:Trap",
)


@dataclass(frozen=True)
class Material:
    """A run directory, the state of its checkpoint, and an agent that has trained."""

    run: Path
    state: dict[str, Any]
    agent: PPO


def prepare(folder: Path) -> list[Material]:
    """A run of every kind, and a module that must not be imported."""
    (folder / f"{TRAP}.py").touch()
    sys.path.append(str(folder))
    return [_trained(name, folder / name) for name in sorted(AGENTS)]


def case(pick: random.Random, material: list[Material], folder: Path) -> None:
    """One damaged checkpoint."""
    chosen, path = pick.choice(material), folder / "damaged.safetensors"
    try:
        write_checkpoint(path, damaged(pick, chosen.state))
        state = read_checkpoint(path)
    except CheckpointError:
        return  # nested too deep to be written, or to be read
    with contextlib.redirect_stdout(io.StringIO()):
        _load(path)
        _resume(chosen, path, folder / "run")
        _load_into(chosen.agent, state)
    assert TRAP not in sys.modules, "a checkpoint has imported a module"


def damaged(pick: random.Random, sound: dict[str, Any]) -> dict[str, Any]:
    """A state with a few wrong entries."""
    state = copied(sound)
    for _ in range(pick.choice([1, 1, 1, 2, 5])):
        places = list(_places(state))
        holder, name = pick.choice(places)
        value = holder[name]
        match pick.randrange(7):
            case 0:
                del holder[name]
            case 1:
                holder[name] = deepcopy(pick.choice((*NUMBERS, *OTHERS)))
            case 2 if isinstance(holder, dict):
                holder[pick.choice(["x", f"{name}x", "", "kind"])] = holder.pop(name)
            case 3:
                other, its_name = pick.choice(places)
                if not (_holds(value, other) or _holds(other[its_name], holder)):
                    holder[name], other[its_name] = other[its_name], value
            case 4:
                nest: Any = value
                for _ in range(pick.choice([1, 2, 50, 99, 200])):
                    nest = [nest] if pick.random() < 0.5 else {"a": nest}
                holder[name] = nest
            case _:
                holder[name] = _odd(pick, value)
    return state


def _places(state: Any) -> Any:
    """Every (dict or list, key or index)."""
    pairs = list(state.items()) if isinstance(state, dict) else list(enumerate(state))
    for name, value in pairs:
        yield state, name
        if isinstance(value, dict | list):
            yield from _places(value)


def _holds(tree: Any, part: Any) -> bool:
    inside = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return tree is part or any(_holds(one, part) for one in inside)


def _odd(pick: random.Random, value: Any) -> Any:
    """Something of the same type that nobody would have saved."""
    if isinstance(value, torch.Tensor):
        return torch.from_numpy(np.array(_odd(pick, value.numpy())))
    if isinstance(value, np.ndarray | np.generic):
        whole = np.array(value)
        match pick.randrange(5):
            case 0 if whole.size and whole.dtype.kind == "f":
                whole.flat[pick.randrange(whole.size)] = pick.choice([math.nan, math.inf, -math.inf, 1e300, -1.0])
                return whole
            case 0 if whole.size and whole.dtype.kind == "i":
                whole.flat[pick.randrange(whole.size)] = pick.choice([-1, 2**62, -(2**63), 9])
                return whole
            case 1:
                return whole.astype(
                    pick.choice(["float32", "float64", "int64", "uint8", "bool", "float16", "complex64"])
                )
            case 2:
                return whole.reshape(pick.choice([(-1,), (1, *whole.shape), (*whole.shape, 1)]))
            case 3:
                return np.zeros(pick.choice([(), (0,), (3,), (1000, 1000)]), whole.dtype)
            case _:
                return whole.flatten()[: pick.randrange(whole.size + 1)]
    if isinstance(value, bool | int | float):
        return pick.choice(NUMBERS)
    if isinstance(value, str):
        return pick.choice(["", "x", value * 2, value.upper(), f"{TRAP}:Trap", "a:b", "\0", "é" * 1000, "./x.so"])
    if isinstance(value, list):
        return pick.choice([[], value[:-1], value * 2, value * 100])
    return {} if value is not None else pick.choice(NUMBERS)


def refusal(action: Callable[[], object]) -> CheckpointError | None:
    """The error with which a checkpoint is refused; other typed errors, such as those of envs, are fine, too."""
    try:
        action()
    except CheckpointError as error:
        return error
    except SurefootError:
        pass
    return None


def _load(path: Path) -> None:
    """Into a new agent that acts and trains; an error names the file."""
    error = refusal(lambda: _use(path))
    assert error is None or str(path) in str(error), error


def _use(path: Path) -> None:
    agent = PPO.load(path)
    limit = agent.config.env.max_episode_steps
    if limit is None or limit < MOST_WORK:
        agent.evaluate(1)
    if _is_small(agent):
        agent.learn(16)
    agent.close()


def _is_small(agent: PPO) -> bool:
    """Whether an iteration of it does not take long."""
    config = agent.config
    work = config.rollout.size * config.ppo.epochs * max(1, config.train.eval_episodes) * max(1, config.rollout.workers)
    return work < MOST_WORK


def _resume(material: Material, path: Path, run: Path) -> None:
    shutil.copytree(material.run, run)
    newest = RunDirectory(run).saved()[0]
    shutil.copy(path, newest)
    before = newest.read_bytes()
    total = material.state["progress"]["step"] + 16
    error = refusal(lambda: go_on(run, {"train.steps": total}))
    if error is not None:
        assert newest.name in str(error) or "readable" in str(error), error
        assert newest.read_bytes() == before
        assert RunDirectory(run).saved()[0] == newest


def _load_into(agent: PPO, state: dict[str, Any]) -> None:
    """Into an agent that has trained: a refused state changes nothing, and a loaded one is undone."""
    run = agent._begun()
    before, noise = copied(run.state()), torch.get_rng_state()
    if refusal(lambda: run.load_state(state)) is not None:
        assert_same(run.state(), before)
        assert torch.equal(torch.get_rng_state(), noise)
        assert_same(agent._begun().state(), before)
        return
    run.load_state(before)
    if before["collector"]["envs"] is not None:
        assert_same(run.state(), before)


def _trained(name: str, folder: Path) -> Material:
    """A trained agent and its run directory."""
    env, settings = AGENTS[name]
    agent = PPO(env, **SMALL | settings).learn(32, run_dir=folder)
    atexit.register(agent.close)
    return Material(folder, read_checkpoint(RunDirectory(folder).saved()[0]), agent)
