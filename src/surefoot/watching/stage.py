"""The stage: one env made for drawing, in which each episode of an evaluation can be played again."""

import json
import math
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from gymnasium.vector import VectorEnv
from gymnasium.wrappers import HumanRendering

from surefoot.envs.adapters.envpool import EnvPoolEnv, is_mujoco
from surefoot.envs.blueprint import Blueprint
from surefoot.envs.library import accepts, is_library, library_factory
from surefoot.envs.make import ENVPOOL, EnvSource, env_factory, fixed_envs
from surefoot.envs.native_single import NativeEnv
from surefoot.envs.native_task import native_task
from surefoot.envs.protocol.agent_parameters import Values, set_agent_values
from surefoot.envs.protocol.calls import close_env, construct
from surefoot.envs.protocol.shard import Shard
from surefoot.errors import EnvError, SurefootError, VideoError
from surefoot.machine.opengl import ADVICE, import_mujoco
from surefoot.settings.config import EnvConfig
from surefoot.watching.camera import FilmedEnv
from surefoot.watching.mujoco_backend import CURRENT, SIDE, GLContext, prepare_mujoco, trial
from surefoot.watching.target import has_display

_DRIVER = "SDL_VIDEODRIVER"
"""The variable with which pygame is told where to draw."""
RenderMode = Literal["rgb_array", "human"]
DEFAULT_FPS = 30
"""Frames per second of envs that do not say how fast they are."""
MOST_FPS = 30
"""Frames per second of a video; envs with more steps per second are shown in real time with some steps left out."""
_TRIAL = f"""{CURRENT}
import json
import envpool
env = envpool.make(
    sys.argv[2], env_type="gymnasium", num_envs=1, render_mode="rgb_array", **json.loads(sys.argv[3])
)
env.reset()
env.render()
"""


class Stage:
    """One env for a window (`human`) or for pictures (`rgb_array`); close it after use."""

    def __init__(
        self,
        source: EnvSource,
        config: EnvConfig,
        mode: RenderMode,
        most_fps: float = MOST_FPS,
        of_agent: Values | None = None,
    ) -> None:
        self._config, self._of_agent = config, of_agent or {}
        self.is_given = fixed_envs(source) is not None
        """Whether the env was made by somebody else, who will also close it."""
        name = source if isinstance(source, str) else config.id
        self._driver = _chosen_driver(mode)
        if self._driver is not None:
            os.environ[_DRIVER] = self._driver
        try:
            env = _made(source, config, mode, name)
            _check_mode(env, mode, name)
            if mode == "rgb_array":
                prepare_mujoco(env, name)
        except BaseException:
            self._forget_driver()
            raise
        steps_per_second = float(getattr(env, "metadata", {}).get("render_fps") or DEFAULT_FPS)
        stride = max(1, math.ceil(steps_per_second / most_fps))
        self.fps = steps_per_second / stride
        self.camera = FilmedEnv(env, name, stride, takes_pictures=mode == "rgb_array")

    def shard(self, number: int, seed: int) -> Shard:
        """The env as env `number` of an evaluation with this seed."""
        config = self._config
        shard = Blueprint(
            [lambda: self.camera], seed, config.truncation_as_termination, config.metrics, first_env=number
        ).make(range(1))
        set_agent_values(shard, self._of_agent)
        return shard

    def close(self) -> None:
        """Close the env, unless it was given."""
        if not self.is_given:
            close_env(self.camera, "the drawn env")
        self._forget_driver()

    def _forget_driver(self) -> None:
        if self._driver is not None:
            os.environ.pop(_DRIVER, None)


def _chosen_driver(mode: RenderMode) -> str | None:
    """Where pygame shall draw: by itself it looks for other displays, complains, and draws where nobody sees it."""
    if _DRIVER in os.environ:
        return None
    if not has_display():
        return "dummy"
    is_x11 = os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY")
    return "x11" if mode == "human" and is_x11 else None


def _made(source: EnvSource, config: EnvConfig, mode: RenderMode, name: str) -> Any:
    """An env of the source with the render mode, if the source can make one."""
    if isinstance(source, VectorEnv):
        raise VideoError(
            "a vector env cannot be recorded; pass one env with render_mode='rgb_array', or a function that makes one"
        )
    if isinstance(source, str) and source.startswith(ENVPOOL):
        pool = drawn_pool(source.removeprefix(ENVPOOL), config)
        return HumanRendering(pool) if mode == "human" else pool
    if isinstance(source, str) and is_library(source):
        factory = library_factory(source, config.kwargs, config.max_episode_steps)
        if not factory.twin_draws:
            import_mujoco()
            from surefoot.watching.scene import DrawnNativeEnv

            env = DrawnNativeEnv(NativeEnv(native_task(factory)), name)
            return HumanRendering(env) if mode == "human" else env
    if not isinstance(source, str):
        return source if fixed_envs(source) is not None else construct(_with_mode(source, mode), 0)
    drawn = config.model_copy(update={"id": source, "kwargs": {**config.kwargs, "render_mode": mode}})
    try:
        with warnings.catch_warnings():  # Gymnasium announces that it shows pictures in a window of its own
            warnings.filterwarnings("ignore", ".*HumanRendering")
            return construct(env_factory(source, drawn), 0)
    except EnvError as error:
        if "render_mode" not in str(error):
            raise
        cause = error.__cause__ or error
        raise VideoError(f"environment '{name}' cannot be rendered with render_mode='{mode}': {cause}") from error


def _with_mode(factory: Any, mode: RenderMode) -> Callable[[], Any]:
    """The factory, given the render mode if it takes one."""
    return (lambda: factory(render_mode=mode)) if accepts(factory, "render_mode") else factory


def _check_mode(env: Any, mode: RenderMode, name: str) -> None:
    try:
        modes, has = list(getattr(env, "metadata", {}).get("render_modes") or ()), getattr(env, "render_mode", None)
    except SurefootError:
        raise
    except Exception as error:
        raise VideoError(f"environment '{name}' does not declare its render modes: {error}") from error
    if has == mode:
        return
    listed = f"its metadata lists the render modes {', '.join(map(str, modes))}" if modes else "it has no render modes"
    if mode in modes:
        raise VideoError(
            f"environment '{name}' was created with render_mode={has!r}, but '{mode}' is needed; make it with"
            f" render_mode='{mode}', or let your function take it: def make(render_mode=None)"
        )
    raise VideoError(f"environment '{name}' cannot be rendered with render_mode='{mode}': {listed}")


def drawn_pool(task: str, config: EnvConfig) -> EnvPoolEnv:
    """One env of a task of EnvPool, which ends the process if it cannot draw: another process tries it first."""
    if not is_mujoco(task):
        return EnvPoolEnv(task, config)
    context = GLContext(f"envpool:{task}", SIDE)
    env = EnvPoolEnv(task, config, context)  # first: it refuses arguments with a clearer message
    if problem := _problem(task, json.dumps(config.kwargs), context.backend):
        env.close()
        raise VideoError(f"environment 'envpool:{task}' cannot be rendered: {problem}")
    return env


@cache
def _problem(task: str, kwargs: str, backend: str) -> str | None:
    """Why EnvPool cannot draw a task here; None if it can."""
    done = trial(backend, _TRIAL, task, kwargs)
    if done is None:
        return "EnvPool took too long to draw its first picture"
    if done.returncode == 0:
        return None
    said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    return f"EnvPool ends the process that draws it ({said[-1] if said else 'without a word'}); {ADVICE}"
