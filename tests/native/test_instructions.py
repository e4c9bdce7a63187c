"""Runs are the same bits with AVX2 and AVX-512, and SUREFOOT_INSTRUCTIONS selects one of them."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from surefoot import PPO
from surefoot.cli.main import main
from surefoot.errors import NativeError
from surefoot.native import core
from tests.cli.processes import Process

VARIABLE = "SUREFOOT_INSTRUCTIONS"
TASKS = ("CartPole-v1", "Hopper-v5", "CartPoleNoVel-v1")
Weights = Mapping[str, NDArray[np.generic]]


def train(instructions: str, folder: str) -> None:
    """In a process that has not loaded the core yet, which reads the variable."""
    os.environ[VARIABLE] = instructions
    assert core().instructions() == instructions
    for task, memory in zip(TASKS, ("none", "none", "gru"), strict=True):
        agent = PPO(task, seed=1, num_envs=6, num_steps=32, batch_size=96, policy={"memory": memory})
        agent.learn(3 * 6 * 32)
        weights = {name: part.numpy() for name, part in agent.policy.state_dict().items()}
        np.savez(f"{folder}/{task}.npz", **weights)
        agent.close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Weights]]:
    """The final weights of short runs by instruction set and task."""
    folders = {name: tmp_path_factory.mktemp(name) for name in core().instruction_sets()}
    for process in [Process(train, name, str(folder)) for name, folder in folders.items()]:
        process.wait().succeeded()
    return {name: {task: dict(np.load(folder / f"{task}.npz")) for task in TASKS} for name, folder in folders.items()}


def digest(weights: Weights) -> str:
    parts = hashlib.sha256()
    for name, values in sorted(weights.items()):
        parts.update(name.encode() + values.tobytes())
    return parts.hexdigest()


@pytest.mark.parametrize("task", TASKS)
def test_avx2_and_avx512_give_the_same_weights(task: str, trained: dict[str, dict[str, Weights]]) -> None:
    fused = {name: digest(weights[task]) for name, weights in trained.items() if name != "generic"}
    if len(fused) < 2:
        pytest.skip("this machine does not have both AVX2 and AVX-512")
    assert len(set(fused.values())) == 1, fused


@pytest.mark.parametrize("task", TASKS)
def test_generic_weights_are_close(task: str, trained: dict[str, dict[str, Weights]]) -> None:
    """Not equal: the generic kernels do not fuse multiplications with additions (docs/native.md)."""
    best, plain = trained[core().instruction_sets()[-1]][task], trained["generic"][task]
    assert best.keys() == plain.keys()
    for name, values in best.items():
        np.testing.assert_allclose(values, plain[name], rtol=1e-3, atol=1e-3, err_msg=name)


def refused(run: str) -> None:
    """However the core is used."""
    os.environ[VARIABLE] = "abacus"

    def train(engine: str) -> None:
        PPO("CartPole-v1", num_envs=2, num_steps=8, batch_size=16, rollout={"engine": engine}).learn(16)

    for use in (core, lambda: train("auto"), lambda: train("native"), lambda: train("local")):
        try:
            use()
        except NativeError as error:
            print(error)
    for command in (["envs"], ["train", "CartPole-v1", "--run-dir", run]):
        print(main(command))


def test_unknown_instructions_are_an_error(tmp_path: Path) -> None:
    """Never a reason to train without it."""
    done = Process(refused, str(tmp_path / "run")).wait().succeeded()
    choices = ", ".join(core().instruction_sets())
    said = f"{VARIABLE} is 'abacus', but this machine supports {choices}; choose one of them or unset the variable"
    assert done.out.splitlines() == [said] * 4 + ["2"] * 2
    assert done.err.splitlines() == [f"error: {said}"] * 2


@pytest.mark.parametrize("name", ["", "generic"])
def test_the_variable_selects_the_instructions(name: str) -> None:
    code = "from surefoot.native import core; print(core().instructions())"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {VARIABLE: name}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == (name or core().instruction_sets()[-1])
