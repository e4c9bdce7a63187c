"""Agents in engines: the same rows wherever their envs are stepped."""

from functools import partial

import numpy as np
import pytest

from surefoot.envs.blueprint import Blueprint
from surefoot.envs.engines import engines
from surefoot.envs.protocol import VecEnv, new_slot, step_all
from surefoot.settings.config import RolloutConfig
from tests.envs.teams import TEAM, TeamEnv, teams

NUM_ENVS = 5


def run(env: VecEnv, num_steps: int) -> list[list[np.ndarray]]:
    slot = new_slot(env.num_rows, env.obs_spec, env.mask_size)
    env.reset(slot)
    seen = []
    for _ in range(num_steps):
        step_all(env, slot.action_mask.argmax(1), slot)
        fields = (slot.obs, slot.reward, slot.terminated, slot.truncated, slot.valid, slot.action_mask)
        seen.append([*map(np.copy, fields), env.final_obs[slot.ended]])
    return seen


@pytest.mark.parametrize(("engine", "workers", "groups"), [("local", 0, 2), ("processes", 2, 2), ("processes", 3, 1)])
def test_the_same_rows_in_every_engine(engine, workers, groups):
    makers = [partial(TeamEnv, index, TEAM, masks="info") for index in range(NUM_ENVS)]
    config = RolloutConfig(num_envs=NUM_ENVS, engine=engine, workers=workers, groups=groups)
    env = engines[engine](Blueprint(makers, 3), config)
    try:
        alone = teams(NUM_ENVS, masks="info")
        for step, expected in zip(run(env, 20), run(alone, 20), strict=True):
            for value, wanted in zip(step, expected, strict=True):
                np.testing.assert_array_equal(value, wanted)
        assert [env.describe(row) for row in range(env.num_rows)] == [alone.describe(row) for row in range(15)]
        state = env.save_state()
        assert state is not None
        assert len(state["envs"]) == NUM_ENVS
    finally:
        env.close()
