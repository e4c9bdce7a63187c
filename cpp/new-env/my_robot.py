"""MyRobot-v0 in Python: the readable twin of my_robot.cpp, which calls the same MuJoCo functions in the same order."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium import spaces

NOISE, FARTHEST_TILT, DRIFT = 0.05, 0.5, 0.1
SUBSTEPS = 4


class MyRobot(gym.Env[Any, Any]):
    """A cart balances a pole."""

    metrics = {"tilt": "mean"}
    parameters = {"gear": 10.0}

    def __init__(self, xml_file: str = "my_robot.xml", frame_skip: int = SUBSTEPS) -> None:
        self._model = mujoco.MjModel.from_xml_path(str(Path(__file__).parent / xml_file))
        self._data, self._frame_skip = mujoco.MjData(self._model), frame_skip
        low, high = self._model.actuator_ctrlrange.T.astype(np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self._model.nq + self._model.nv,), np.float64)
        self.action_space = spaces.Box(low, high, dtype=np.float32)

    def set_parameters(self, values: dict[str, Any]) -> None:
        self._model.actuator_gear[0, 0] = values["gear"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self._model, self._data)
        self._data.qpos += self.np_random.uniform(-NOISE, NOISE, self._model.nq)
        self._data.qvel += self.np_random.uniform(-NOISE, NOISE, self._model.nv)
        mujoco.mj_forward(self._model, self._data)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        for _ in range(self._frame_skip):
            self._data.ctrl[:] = action
            mujoco.mj_step(self._model, self._data)
        tilt = abs(float(self._data.qpos[1]))
        reward = 1.0 - DRIFT * abs(float(self._data.qpos[0]))
        return self._observe(), reward, not tilt < FARTHEST_TILT, False, {"tilt": tilt}

    def _observe(self) -> Any:
        return np.concatenate((self._data.qpos, self._data.qvel))


TWINS = {"MyRobot-v0": MyRobot}
"""Which class stands for which id of the library."""
