"""Native environments with states and actions that nobody meant: refused, and nothing changes; or taken, and no crash.

What leaves no trace here is found by the same attack in C++ under AddressSanitizer, `make fuzz-core`.
"""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.envs import native
from surefoot.envs.make import make_vec_env
from surefoot.envs.protocol import slot_for, step_all
from surefoot.errors import SurefootError
from surefoot.native import core
from surefoot.settings.config import EnvConfig, RolloutConfig
from surefoot.verification.contract import random_actions
from tests.fuzz.values import ANY, odd_array

ROWS = 3
BAD = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e17, -5.0, 0.5, 1e9, 2.0**53, 5e-324, -1.0)


def prepare(folder: Path) -> list[str]:
    """All environments of the core."""
    return list(core().env_ids())


def case(pick: random.Random, material: list[str], folder: Path) -> None:
    """A state in one half of the cases, the Gymnasium interface in the other."""
    env_id = pick.choice(material)
    (_hostile_state if pick.random() < 0.5 else _hostile_calls)(pick, env_id)


def _hostile_state(pick: random.Random, env_id: str) -> None:
    env = make_vec_env(env_id, EnvConfig(id=env_id), ROWS, pick.randrange(9), RolloutConfig(engine="native", workers=1))
    slot, generator = slot_for(env), np.random.default_rng(pick.randrange(2**32))
    env.reset(slot, 0)
    for _ in range(pick.randrange(4)):
        step_all(env, random_actions(generator, env.action_spec, slot), slot)
    saved = env.save_state()
    assert saved is not None
    hostile = _hostile(pick, saved)
    try:
        env.load_state(hostile)
    except SurefootError:
        after = env.save_state()
        assert after is not None
        assert np.array_equal(after["rows"], saved["rows"]), "a refused state changed the environments"
    try:
        for _ in range(5):
            step_all(env, random_actions(generator, env.action_spec, slot), slot)
    except SurefootError:
        pass
    env.load_state(saved)
    env.close()


def _hostile(pick: random.Random, saved: dict[str, Any]) -> Any:
    rows = saved["rows"].copy()
    if pick.random() < 0.2:
        return pick.choice(
            [
                {},
                {"rows": None},
                {"rows": rows[:-1]},
                {"rows": rows.astype(np.float32)},
                {"rows": odd_array(pick, rows.shape)},
            ]
        )
    numbers = rows.view(np.float64).reshape(-1)
    for _ in range(pick.choice([1, 1, 2, 20])):
        at = pick.randrange(numbers.size)
        if pick.random() < 0.3:
            rows.reshape(-1)[at] ^= 1 << pick.randrange(63)
        else:
            numbers[at] = pick.choice(BAD)
    return {**saved, "rows": rows}


def _hostile_calls(pick: random.Random, env_id: str) -> None:
    try:
        env = native.make(env_id, num_envs=pick.choice([1, 2, 3, 3, 3, True, 0, -1, 1.5, "2", None]))
    except SurefootError:
        return
    shape = env.action_space.shape or (env.num_envs,)
    for _ in range(5):
        try:
            if pick.random() < 0.3:
                seed = pick.choice([None, 1, [1, 2, 3], -1, 1.5, "x", 10**30, *ANY])
                env.reset(seed=seed, options=pick.choice([None, {}, {"x": 1}, 3]))
            env.step(env.action_space.sample() if pick.random() < 0.3 else odd_array(pick, shape))
        except SurefootError:
            pass
    env.close()
