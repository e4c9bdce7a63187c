"""The time of Python in an iteration whose rollout and update run in the core: `python -m benchmarks.around_core`.

Through `PPO.learn` in a run directory, with the default hooks, metrics and log files, on one core. Prints the CPU
time of iterations without the two calls of the core, and of those two: the fastest tenth of all iterations takes less
than the first number, half of them less than the second. Waiting for a CPU or a disk does not count; other processes
that share the caches still slow it down, most of all the median. Prints a JSON object, too.

Python on a machine with nothing else running, the better of two rounds that took turns; before is commit 62509bc:

| ms per iteration: fastest tenth, median | before | now |
|---|---:|---:|
| CartPole-v1, 8 x 128 | 0.99, 1.02 | 0.43, 0.45 |
| Pendulum-v1, 4 x 1024 | 1.09, 1.15 | 0.55, 0.56 |
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot import PPO
from surefoot.rollout.native import NativeCollector

TASKS: dict[str, dict[str, Any]] = {
    "CartPole-v1, 8 x 128": {"num_envs": 8, "num_steps": 128, "batch_size": 256, "epochs": 4, "preset": "none"},
    "Pendulum-v1, 4 x 1024": {"num_envs": 4, "num_steps": 1024, "batch_size": 256, "epochs": 2, "preset": "none"},
}
ITERATIONS = 600
WARM_UP = 100


class Clock:
    """Milliseconds of this thread in calls of the core, and in whole iterations."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(("rollout", "update"), 0.0)
        self.rows: list[dict[str, float]] = []
        self._last = time.thread_time()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, whose time counts as the core's."""

        def timed(*arguments: Any) -> Any:
            began = time.thread_time()
            try:
                return call(*arguments)
            finally:
                self.spent[name] += 1e3 * (time.thread_time() - began)

        return timed

    def end_iteration(self, report: object) -> None:
        """A hook: called after each iteration."""
        now = time.thread_time()
        whole = 1e3 * (now - self._last)
        self.rows.append({**self.spent, "python": whole - sum(self.spent.values())})
        self.spent = dict.fromkeys(self.spent, 0.0)
        self._last = now


class Core:
    """An object of the core, one method of which is timed."""

    def __init__(self, core: Any, method: str, timed: Callable[..., Any]) -> None:
        self._core = core
        setattr(self, method, timed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)


def measure(settings: dict[str, Any], env_id: str, folder: Path) -> dict[str, list[float]]:
    """Milliseconds per iteration: the limit of the fastest tenth and the median of each part."""
    clock = Clock()
    agent = PPO(env_id, **settings, threads=1, eval_episodes=0, checkpoint_every=10**9, console="off")
    trainer = agent._started()
    assert isinstance(trainer.collector, NativeCollector)
    env: Any = trainer.collector._env
    env._core = Core(env.core, "collect", clock.timed("rollout", env.core.collect))
    learner: Any = trainer.learner
    learner._core = Core(learner._core, "learn", clock.timed("update", learner._core.learn))
    agent.learn(ITERATIONS * settings["num_envs"] * settings["num_steps"], run_dir=folder, hooks=[clock.end_iteration])
    rows = clock.rows[WARM_UP:]
    tenths = {name: statistics.quantiles((row[name] for row in rows), n=10) for name in rows[0]}
    return {name: [limits[0], limits[4]] for name, limits in tenths.items()}


def main() -> None:
    """Measure all tasks and print a table."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # else another thread may take any part of a rollout
    results = {}
    print("| ms per iteration: fastest tenth, median | Python | rollout | update |\n|---|---:|---:|---:|")
    for name, settings in TASKS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = results[name] = measure(settings, name.partition(",")[0], Path(folder) / "run")
        python, rollout, update = (
            ", ".join(f"{limit:.2f}" for limit in found[part]) for part in ("python", "rollout", "update")
        )
        print(f"| {name} | **{python}** | {rollout} | {update} |", flush=True)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
