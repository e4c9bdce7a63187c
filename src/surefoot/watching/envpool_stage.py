"""EnvPool's MuJoCo tasks on a stage: EnvPool ends the process if it cannot draw, so another process tries it first."""

import json
from functools import cache

from surefoot.envs.adapters.envpool import EnvPoolEnv, is_mujoco
from surefoot.errors import VideoError
from surefoot.machine.opengl import ADVICE
from surefoot.settings.config import EnvConfig
from surefoot.watching.mujoco_backend import CURRENT, SIDE, GLContext, trial

_TRIAL = f"""{CURRENT}
import json
import envpool
env = envpool.make(
    sys.argv[2], env_type="gymnasium", num_envs=1, render_mode="rgb_array", **json.loads(sys.argv[3])
)
env.reset()
env.render()
"""


def drawn_pool(task: str, config: EnvConfig) -> EnvPoolEnv:
    """One env of a task that can be drawn."""
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
