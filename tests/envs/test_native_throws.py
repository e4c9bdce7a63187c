"""C++ envs that throw, even what is not a std::exception: an error that names the env and the call, never an abort."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import PPO
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import VecEnv, slot_for, step_all
from surefoot.errors import EnvError, SurefootError
from surefoot.settings.config import EnvConfig, RolloutConfig
from tests.compiled import compiled

SOURCE = Path(__file__).parent / "throwing_env.cpp"
SMALL: dict[str, Any] = {
    **{"num_envs": 3, "num_steps": 8, "batch_size": 24, "epochs": 1, "hidden": 4, "workers": 2},
    **{"eval_episodes": 0, "tensorboard": False, "engine": "native"},
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compiled(Path(shutil.copy(SOURCE, tmp_path_factory.mktemp("throwing")))))


def opened(library: str, **kwargs: str) -> VecEnv:
    config = EnvConfig(id=library, kwargs=kwargs)
    return make_vec_env(library, config, 3, 0, RolloutConfig(engine="native", workers=2))


@pytest.mark.parametrize("where", ["constructor", "clone"])
@pytest.mark.parametrize("what", ["", "off the map"])
def test_before_the_first_reset(library: str, where: str, what: str) -> None:
    unknown = "threw something other than a std::exception before its first reset"
    with pytest.raises(SurefootError, match=what or unknown):
        opened(library, where=where, what=what)


@pytest.mark.parametrize("where", ["reset", "step", "observe", "mask", "measure"])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("", "something other than a std::exception, so its message is unknown"),
        ("off the map", "an exception: off the"),
    ],
)
def test_in_the_threads_of_a_rollout(library: str, where: str, what: str, message: str, tmp_path: Path) -> None:
    agent = PPO(library, kwargs={"where": where, "what": what}, **SMALL)
    with pytest.raises(EnvError, match=f"env [012]: {where} threw {message}"):
        agent.learn(48, run_dir=tmp_path / "run")


@pytest.mark.parametrize("where", ["save", "load", "set_parameter"])
def test_states_and_parameters(library: str, where: str) -> None:
    env, other = opened(library, where=where), opened(library)
    for one in (env, other):
        slot = slot_for(one)
        one.reset(slot, 0)
        step_all(one, np.zeros(3, np.int64), slot)
    saved = other.save_state()
    assert saved is not None
    calls = {
        "save": env.save_state,
        "load": lambda: env.load_state(saved),
        "set_parameter": lambda: env.set_parameters({"wind": 1.0}),
    }
    with pytest.raises(EnvError, match=f"{where} threw something other than a std::exception"):
        calls[where]()
    step_all(env, np.zeros(3, np.int64), slot_for(env))
