"""Arm-v0 in Python, the twin of arm.cpp: it calls the same MuJoCo functions in the same order."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium import spaces

STIFFNESS, DAMPING, SUBSTEPS = 30.0, 3.0, 4


class Arm(gym.Env):
    """Turn a hanging arm to a goal; the action is an angle that a PD law holds."""

    metrics = {"miss": "last"}

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
        self.action_space = spaces.Box(-3.0, 3.0, (1,), np.float32)
        self._model = mujoco.MjModel.from_xml_path(str(Path(__file__).parent / "arm.xml"))
        self._data = mujoco.MjData(self._model)
        self._goal = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[0] = self.np_random.uniform(-1.0, 1.0)
        self._goal = float(self.np_random.uniform(-1.0, 1.0))
        mujoco.mj_forward(self._model, self._data)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        data = self._data
        for _ in range(SUBSTEPS):
            data.ctrl[0] = STIFFNESS * (float(action[0]) - data.qpos[0]) - DAMPING * data.qvel[0]
            mujoco.mj_step(self._model, data)
        miss = float(data.qpos[0]) - self._goal
        return self._observe(), -miss * miss, False, False, {"miss": abs(miss)}

    def _observe(self) -> Any:
        return np.array([self._data.qpos[0], self._data.qvel[0], self._goal])


TWINS = {"Arm-v0": Arm}
