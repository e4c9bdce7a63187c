"""Pictures of native MuJoCo envs: the core tells model and pose, and MuJoCo draws them."""

from typing import Any

import gymnasium as gym
import mujoco
import numpy as np

from surefoot.envs.native_single import NativeEnv
from surefoot.errors import VideoError
from surefoot.watching.camera import Picture
from surefoot.watching.mujoco_backend import SIDE, TRACK, GLContext, without_slow_shadows

_MOST_GEOMS, _FONT_SCALE = 10_000, 150
_ROOM = 1.5
"""How much farther away than MuJoCo proposes: it fits the model as it lies at rest."""


class DrawnNativeEnv(gym.Wrapper[Any, Any, Any, Any]):
    """A native env that is drawn as its simulation stands after each step."""

    render_mode = "rgb_array"

    def __init__(self, env: NativeEnv, name: str) -> None:
        super().__init__(env)
        if not env.model or env.num_agents > 1:
            why = "it has several agents" if env.num_agents > 1 else "MuJoCo does not simulate it"
            raise VideoError(
                f"environment '{name}' cannot be rendered from its C++ alone, because {why}; give it a Python twin with"
                " render() whose constructor accepts render_mode"
            )
        self._native, self._drawing, self._context = env, Drawing(env.model), GLContext(name, SIDE)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 1 / env.seconds_per_step}

    def render(self) -> Any:
        """A picture of the last step, or of the beginning."""
        self._context.make_current()
        if self._drawing.file != self._native.model:  # tasks may change their models in a reset
            self._drawing.free()
            self._drawing = Drawing(self._native.model)
        return self._drawing.of(self._native.pose, self._context.backend)

    def close(self) -> None:
        """Release what was drawn with."""
        self._context.make_current()
        self._drawing.free()
        self._context.free()
        super().close()


class Drawing:
    """A model, its simulation in Python, and a camera."""

    def __init__(self, file: bytes) -> None:
        self.file = file
        self._model = mujoco.MjModel.from_binary_path("scene.mjb", {"scene.mjb": file})
        buffer = self._model.vis.global_
        buffer.offwidth = buffer.offheight = SIDE
        self._data, self._option = mujoco.MjData(self._model), mujoco.MjvOption()
        self._scene, self._camera = mujoco.MjvScene(self._model, _MOST_GEOMS), _camera(self._model)
        self._renderer: mujoco.MjrContext | None = None

    def free(self) -> None:
        """Release what OpenGL holds; needs the context that drew."""
        if self._renderer is not None:
            self._renderer.free()

    def of(self, pose: np.ndarray, backend: str) -> Picture:
        """A picture of a pose; needs a current OpenGL context."""
        model, data = self._model, self._data
        if self._renderer is None:
            without_slow_shadows(model, backend)
            self._renderer = mujoco.MjrContext(model, _FONT_SCALE)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._renderer)
        mujoco.mj_setState(model, data, pose, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(model, data)
        every = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(model, data, self._option, None, self._camera, every, self._scene)
        whole, picture = mujoco.MjrRect(0, 0, SIDE, SIDE), np.empty((SIDE, SIDE, 3), np.uint8)
        mujoco.mjr_render(whole, self._scene, self._renderer)
        mujoco.mjr_readPixels(picture, None, whole, self._renderer)
        return picture[::-1]  # OpenGL's rows go from the bottom up


def _camera(model: mujoco.MjModel) -> mujoco.MjvCamera:
    """The model's camera `track`, else its first one, else one that follows the first body that moves freely."""
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    camera.distance *= _ROOM
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if model.ncam:
        track = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, TRACK)
        camera.type, camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, max(0, track)
    elif len(free):
        camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, int(model.jnt_bodyid[free[0]])
    return camera
