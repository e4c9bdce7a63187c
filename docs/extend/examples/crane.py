"""Crane-v0 in Python: the readable twin of crane.cpp, with the same calls in the same order."""

from typing import Any

import gymnasium as gym
import mujoco
import numpy as np
from gymnasium import spaces

from surefoot.envs.step_random import StepRandom

SUBSTEPS, STIFFNESS, DAMPING, LIGHTEST, HEAVIEST = 4, 30.0, 3.0, 0.5, 3.0
DIVERGED = [
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
    mujoco.mjtWarning.mjWARN_BADCTRL,
]
MODEL = """
<mujoco>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03" mass="1"/>
      <body name="load" pos="0 0 -0.5"><geom size="0.05" mass="1"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-20 20"/></actuator>
</mujoco>"""


class Crane(gym.Env):
    """Hold an arm with an unknown load at an angle, in gusts."""

    metrics = {"load": "last", "thrown": "last"}
    parameters = {"heaviest": HEAVIEST}

    def __init__(self, gust: float = 0.5) -> None:
        self._strength, self._heaviest = gust, HEAVIEST
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Box(-1.5, 1.5, (1,), np.float32)
        self._model = mujoco.MjModel.from_xml_string(MODEL)
        self._data = mujoco.MjData(self._model)
        self._inertia = self._model.body("load").inertia.copy()

    def set_parameters(self, values: dict[str, Any]) -> None:
        if not values["heaviest"] >= LIGHTEST:
            raise ValueError("heaviest must be at least 0.5")
        self._heaviest = values["heaviest"]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._weigh(self.np_random.uniform(LIGHTEST, self._heaviest))
        mujoco.mj_resetData(self._model, self._data)
        self._random = StepRandom(self.np_random)
        mujoco.mj_forward(self._model, self._data)
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._random.next_step()
        gust, data = self._strength * self._random.normal(), self._data
        for warning in DIVERGED:
            data.warning[warning].number = 0
        for _ in range(SUBSTEPS):
            mujoco.mj_step1(self._model, data)
            wanted = STIFFNESS * (float(action[0]) - data.qpos[0]) - DAMPING * data.qvel[0]
            data.ctrl[0] = wanted + data.qfrc_bias[0]
            data.qfrc_applied[0] = gust
            mujoco.mj_step2(self._model, data)
        # MuJoCo has then started the simulation over in the middle of the step.
        is_thrown = any(data.warning[warning].number > 0 for warning in DIVERGED)
        miss = float(data.qpos[0]) - 1.0
        reward = 0.0 if is_thrown else -miss * miss
        info = {"load": self._load, "thrown": float(is_thrown)}
        return self._observe(), reward, is_thrown, False, info

    def _weigh(self, load: float) -> None:
        body = self._model.body("load")
        self._load, body.mass[0], body.inertia[:] = load, load, load * self._inertia
        mujoco.mj_setConst(self._model, self._data)

    def _observe(self) -> Any:
        return np.array([self._data.qpos[0], self._data.qvel[0]])


TWINS = {"Crane-v0": Crane}
