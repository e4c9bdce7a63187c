"""Everything shipped that calls itself an environment passes the checks of Gymnasium and PettingZoo."""

import ast
import re
import subprocess
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_equal

from surefoot.envs.native_vector import NativeVectorEnv
from surefoot.envs.tasks.registration import OWN_TASKS
from surefoot.errors import NativeError

ROOT = Path(__file__).parents[2]
PLACES = ("README.md", "examples/*.py", "docs/**/*.py", "docs/**/*.md", "cpp/new-env/*.py")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
USUAL = ("-infinity", "infinity", "symmetric and normalized space", "not having a spec")
"""Warnings about the taste in spaces, and about envs that are not registered: they are not mistakes."""


def shipped() -> Iterator[Any]:
    """The name, source text and file of every class with `reset` and `step` outside of the package."""
    for path in sorted({path for place in PLACES for path in ROOT.glob(place)}):
        text = path.read_text(encoding="utf-8")
        for block in [text] if path.suffix == ".py" else BLOCK.findall(text):
            for node in ast.parse(block).body:
                if isinstance(node, ast.ClassDef) and {"reset", "step"} <= {
                    getattr(one, "name", "") for one in node.body
                }:
                    where = f"{path.relative_to(ROOT)}-{node.name}"
                    yield pytest.param(block, node.name, path, id=where)


def made(block: str, name: str, path: Path) -> Any:
    """An env of a class; of the script around it, only what comes before the end of the class is run."""
    module = types.ModuleType("shipped")
    module.__file__ = str(path)
    tree = ast.parse(block)
    last = next(place for place, node in enumerate(tree.body) if getattr(node, "name", "") == name)
    tree.body = tree.body[: last + 1]
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return getattr(module, name)()


def check(env: Any) -> None:
    """With the checks of its kind, whose warnings are faults."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if isinstance(env, gym.Env):
            check_env(env)
        else:
            from pettingzoo.test import parallel_api_test  # which imports games that warn of their age

            told.clear()
            parallel_api_test(env, num_cycles=60)
    unusual = [str(one.message) for one in told if not any(usual in str(one.message) for usual in USUAL)]
    assert not unusual


@pytest.mark.parametrize("env_id", OWN_TASKS)
def test_a_task_passes_and_the_core_makes_many_of_it(env_id: str) -> None:
    check(gym.make(env_id).unwrapped)
    envs = gym.make_vec(env_id, num_envs=3)
    one_by_one = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync")
    assert isinstance(envs, NativeVectorEnv)
    assert envs.metadata["autoreset_mode"] == one_by_one.metadata["autoreset_mode"]
    assert envs.spec is not None
    assert envs.spec.to_json(), "a spec that can be written down"
    assert_equal(envs.reset(seed=5)[0], one_by_one.reset(seed=5)[0])


def test_vector_envs_of_the_core_say_that_they_draw_nothing() -> None:
    with pytest.raises(NativeError, match=r"in the core draws no pictures, .* pass vectorization_mode='sync' to draw"):
        gym.make_vec("Market-v0", num_envs=2, render_mode="rgb_array")
    gym.make_vec("Market-v0", num_envs=2, render_mode=None).close()


@pytest.mark.parametrize(
    "lines",
    [
        "import surefoot, gymnasium as gym",
        "import gymnasium as gym, surefoot",
        "import surefoot, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium as gym",
        "import gymnasium as gym; gym.make('surefoot:TMaze-v0')",
    ],
)
def test_an_import_is_enough_and_light(lines: str) -> None:
    before = "import sys, surefoot; assert not {'torch', 'numpy', 'gymnasium'} & set(sys.modules)"
    after = "gym.make_vec('Market-v0', num_envs=4).reset(seed=1); import sys; assert 'torch' not in sys.modules"
    for code in [f"{lines}; {after}", *([before] if lines.startswith("import surefoot") else [])]:
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("block", "name", "path"), list(shipped()))
def test_what_docs_and_examples_show_passes(block: str, name: str, path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    check(made(block, name, path))
