"""`info["is_success"]` is a metric without any declaration, wherever the env runs; odd values are no values."""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from surefoot import PPO
from surefoot.envs.adapters.envpool import EnvPoolEnvs
from surefoot.envs.protocol import slot_for, step_all
from tests.cli.runs import column

TINY = {"num_steps": 16, "batch_size": 16, "epochs": 1, "hidden": 4, "eval_episodes": 2, "eval_every": 32}


class Goal(gym.Env[Any, Any]):
    """Half of the episodes, of four steps each, succeed, in a form of the env's choice."""

    observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def __init__(self, said: tuple[Any, Any] = (False, True)) -> None:
        self._said = said

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._step, self._outcome = 0, self._said[self.np_random.integers(2)]
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        is_over = self._step == 4
        return np.zeros(1, np.float32), 1.0, is_over, False, {"is_success": self._outcome} if is_over else {}


SOURCES = {
    "local": (Goal, {"num_envs": 2, "engine": "local"}),
    "same step": (partial(SyncVectorEnv, [Goal] * 2, autoreset_mode=AutoresetMode.SAME_STEP), {}),
    "next step": (partial(SyncVectorEnv, [Goal] * 2), {}),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_it_is_logged_under_the_names_that_dashboards_know(kind: str, tmp_path: Any) -> None:
    source, settings = SOURCES[kind]
    is_vector = kind != "local"
    agent = PPO(source() if is_vector else source, **TINY, **settings)
    agent.learn(64, run_dir=tmp_path, progress=False)
    assert 0 < column(tmp_path, "rollout/success_rate")[-1] < 1
    evaluation = agent.evaluate(20)
    assert set(evaluation.metrics["success_rate"]) == {0.0, 1.0}
    assert evaluation.win_rate == evaluation.mean_metric("success_rate")
    if not is_vector:
        assert len(column(tmp_path, "eval/success_rate")) == 2


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((np.False_, np.array([1])), [0.0, 1.0]),
        ((0.25, 2.0), [0.25, np.nan]),
        (("no", "yes"), []),
        (({"goal": True}, {"goal": False}), []),
        ((np.array([1, 0]), np.array([0, 1])), []),
    ],
)
def test_values_of_any_other_kind_are_none(said: Any, expected: Any) -> None:
    for source in (partial(Goal, said), SyncVectorEnv([partial(Goal, said)] * 2)):
        metrics = PPO(source, **TINY | ({"num_envs": 2} if callable(source) else {})).evaluate(20).metrics
        np.testing.assert_array_equal(np.unique(metrics.get("success_rate", [])), expected)


class OldVector(SyncVectorEnv):
    """Its final infos are a list, as those of old vector envs."""

    def step(self, actions: Any) -> Any:
        *results, infos = super().step(actions)
        return *results, infos | ({"final_info": [{}, {}]} if "final_info" in infos else {})


def test_old_final_infos_are_no_error() -> None:
    envs = OldVector([Goal] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    assert PPO(envs, **TINY).evaluate(4).metrics == {}


def test_the_best_policy_can_be_chosen_by_it(tmp_path: Any) -> None:
    PPO(Goal, num_envs=2, best_metric="success_rate", **TINY).learn(32, run_dir=tmp_path, progress=False)
    assert (tmp_path / "best.safetensors").exists()


def test_envs_of_envpool_report_it() -> None:
    from surefoot.settings.config import EnvConfig

    envs = EnvPoolEnvs("FetchReach-v4", EnvConfig(), 2, 1)
    slot = slot_for(envs)
    envs.reset(slot)
    step_all(envs, np.zeros((2, 4), np.float32), slot)
    assert envs.metrics == {"success_rate": "last"}
    assert slot.metrics.tolist() == [[0.0], [0.0]]
    envs.close()
