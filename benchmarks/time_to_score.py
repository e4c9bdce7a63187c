"""Seconds until CartPole-v1 is solved (475), beside Stable-Baselines3 in one run.

    python -m benchmarks.time_to_score                               all sides, 5 seeds
    python -m benchmarks.time_to_score --sides surefoot sb3-zoo --seeds 3

Every run has a process of its own, and the sides take turns seed by seed. The clock starts when training starts, after
imports and after envs, networks and optimizer were built. It runs during rollouts, learning and the library's own
bookkeeping. Evaluations are the same on all sides and are not timed: after the first iteration that ends at or beyond
each multiple of 1,024 steps, the policy plays 100 episodes with its most likely actions. No side writes files or logs.

Two times are reported: until the first evaluation of at least 475, and until the first of three such evaluations in a
row. Single evaluations can be lucky: the most likely actions of a policy that is still almost uniform sometimes balance
the pole. Results go to benchmarks/results/time_to_score/.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import use_torch_threads
from surefoot.benchmark.load import OthersClock, loadavg, summarize_load
from surefoot.benchmark.report import describe_machine, machine

RESULTS = Path(__file__).parent / "results" / "time_to_score"
ENV, SCORE, EPISODES, EVALUATION_SEED = "CartPole-v1", 475.0, 100, 1000
EVERY = 1024
"""Steps between evaluations."""
LASTING = 3
"""Evaluations in a row that must reach the score for it to count as lasting."""
MOST_STEPS = 200_000
"""A run that has not reached the score by then has failed."""

Act = Callable[[NDArray[Any]], NDArray[Any]]


class Stopwatch:
    """Times training without its evaluations, and says when the score is reached for good."""

    def __init__(self) -> None:
        self._evaluated_s, self._next, self.curve = 0.0, EVERY, list[tuple[int, float, float]]()

    def begin(self) -> None:
        """Training starts now."""
        self._began = time.perf_counter()

    def is_done(self, step: int, act: Act) -> bool:
        """Evaluate if it is due, while the clock stands still; whether the last evaluations all reached the score."""
        if step < self._next:
            return False
        stopped = time.perf_counter()
        self._next = (step // EVERY + 1) * EVERY
        self.curve.append((step, evaluate(act), stopped - self._began - self._evaluated_s))
        self._evaluated_s += time.perf_counter() - stopped
        return self._lasts_from(len(self.curve) - LASTING)

    def _lasts_from(self, place: int) -> bool:
        scores = [score for _, score, _ in self.curve[max(0, place) : place + LASTING]]
        return len(scores) == LASTING and min(scores) >= SCORE

    def result(self) -> dict[str, Any]:
        """Seconds and steps until the first and the lasting success (None without one), and all evaluations."""
        first = next((point for point in self.curve if point[1] >= SCORE), None)
        lasting = next((point for place, point in enumerate(self.curve) if self._lasts_from(place)), None)
        return {
            "seconds": first and round(first[2], 3),
            "steps": first and first[0],
            "lasting_seconds": lasting and round(lasting[2], 3),
            "lasting_steps": lasting and lasting[0],
            "curve": [[step, round(score, 1), round(seconds, 3)] for step, score, seconds in self.curve],
        }


def evaluate(act: Act) -> float:
    """The mean return of `EPISODES` episodes, one per env; the same first states for every policy."""
    from surefoot.envs.native import make

    env = make(ENV, EPISODES, threads=1)
    obs, _ = env.reset(seed=EVALUATION_SEED)
    total, is_running = np.zeros(EPISODES), np.ones(EPISODES, dtype=bool)
    while is_running.any():
        obs, reward, terminated, truncated, _ = env.step(act(obs))
        total += np.where(is_running, reward, 0)
        is_running &= ~(terminated | truncated)
    env.close()
    return float(total.mean())


def run_surefoot(seed: int, threads: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The preset as `surefoot train` runs it, without files and without the run's own evaluations."""
    import torch

    from surefoot import PPO, Hook

    watch = Stopwatch()

    class Evaluate(Hook):
        def begin(self) -> None:
            self._policy = self.run.policy
            watch.begin()

        def after_iteration(self, report: Any) -> None:
            if watch.is_done(report.progress.step, self._act):
                self.run.stop(f"reached {SCORE:g}")

        @torch.no_grad()
        def _act(self, obs: NDArray[Any]) -> NDArray[Any]:
            rows = len(obs)
            output = self._policy(
                torch.from_numpy(obs.astype(np.float32)), (), torch.zeros(rows, dtype=torch.bool), None
            )
            return self._policy.head.to_env(output.distribution.mode()).numpy()

    agent = PPO(ENV, seed=seed, **{"train.threads": threads, "train.eval_episodes": 0, **settings})
    agent.learn(hooks=[Evaluate()])
    config = agent.config
    agent.close()
    return {**watch.result(), "config": config.model_dump(mode="json")}


def run_sb3(seed: int, threads: int, settings: dict[str, Any], num_envs: int, steps: int) -> dict[str, Any]:
    """Stable-Baselines3's PPO with envs in its process, its default."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    use_torch_threads(threads)
    watch = Stopwatch()

    class Evaluate(BaseCallback):  # type: ignore[misc]
        is_done = False

        def _on_training_start(self) -> None:
            watch.begin()

        def _on_rollout_start(self) -> None:
            """After the update of the rollout before; the first time there was none."""
            self.is_done = watch.is_done(self.num_timesteps, lambda obs: self.model.predict(obs, deterministic=True)[0])

        def _on_step(self) -> bool:
            return not self.is_done

    env = make_vec_env(ENV, n_envs=num_envs, seed=seed)
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **settings)
    # Its schedules end at `steps`; one step more begins another rollout, before which the last update is evaluated.
    model.learn(steps + 1, callback=Evaluate())
    env.close()
    return {**watch.result(), "config": {key: str(value) for key, value in settings.items()}}


def linear(first: float) -> Callable[[float], float]:
    """From `first` to 0, in Stable-Baselines3's words."""
    return lambda remaining: first * remaining


def zoo() -> dict[str, Any]:
    """The tuned values of rl-baselines3-zoo for CartPole-v1, 100,000 steps with 8 envs."""
    return {
        **{"n_steps": 32, "batch_size": 256, "n_epochs": 20, "gae_lambda": 0.8, "gamma": 0.98, "ent_coef": 0.0},
        **{"learning_rate": linear(0.001), "clip_range": linear(0.2)},
    }


SIDES: dict[str, Callable[[int, int, dict[str, Any]], dict[str, Any]]] = {
    "surefoot": run_surefoot,
    "sb3-zoo": lambda seed, threads, extra: run_sb3(seed, threads, {**zoo(), **extra}, 8, 100_000),
    "sb3-default": lambda seed, threads, extra: run_sb3(seed, threads, extra, 1, MOST_STEPS),
}
TITLES = {
    "surefoot": "Surefoot, preset CartPole-v1",
    "sb3-zoo": "Stable-Baselines3, rl-zoo's values",
    "sb3-default": "Stable-Baselines3, its defaults with one env",
}


def run_apart(side: str, seed: int, threads: int, settings: Sequence[str]) -> dict[str, Any]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, "--run", side, "--seed", str(seed), "--threads", str(threads)]
    done = subprocess.run([*command, "--set", *settings], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{side} seed {seed} failed: {done.stderr}")
    result: dict[str, Any] = {"side": side, "seed": seed, **json.loads(done.stdout.splitlines()[-1])}
    told = "not reached" if result["seconds"] is None else f"{result['seconds']:.2f} s, {result['steps']:,} steps"
    print(f"{side} seed {seed}: {told}", flush=True)
    return result


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By side: how many runs reached the score, and median, lowest and highest of those that did."""
    found: dict[str, dict[str, Any]] = {}
    for side in dict.fromkeys(run["side"] for run in runs):
        own = [run for run in runs if run["side"] == side]
        found[side] = {"runs": len(own)}
        for what in ("seconds", "steps", "lasting_seconds", "lasting_steps"):
            values = [run[what] for run in own if run[what] is not None]
            found[side][what] = [statistics.median(values), min(values), max(values)] if values else None
            found[side][f"{what}_count"] = len(values)
    return found


def table(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"# Seconds until {ENV} reaches {SCORE:g}",
        "",
        f"`{result['command']}`. {describe_machine(result['machine'])}. {result['load']}",
        "",
        "Timed: training from its first rollout, after imports and construction. Evaluations are not timed; they are",
        f"the same on all sides, {EPISODES} deterministic episodes about every {EVERY:,} steps. Every run has its",
        "own process; the sides took turns seed by seed. Median (lowest to highest) of the runs that succeeded. First:",
        f"the first evaluation of at least {SCORE:g}, which can be lucky. Lasting: the first of {LASTING} in a row.",
        "",
        "| side | success | runs | seconds | env steps | seconds of each seed |",
        "|---|---|---:|---:|---:|---|",
    ]
    for side, found in result["summary"].items():
        for title, prefix in (("first", ""), ("lasting", "lasting_")):
            each = [run[f"{prefix}seconds"] for run in result["runs"] if run["side"] == side]
            told = ", ".join("not reached" if one is None else f"{one:.2f}" for one in each)
            count = f"{found[f'{prefix}seconds_count']} of {found['runs']}"
            cells = [TITLES[side], title, count, "-", "-", told]
            if found[f"{prefix}seconds"]:
                cells[3] = "{:.2f} ({:.2f} to {:.2f})".format(*found[f"{prefix}seconds"])
                cells[4] = "{:,.0f} ({:,.0f} to {:,.0f})".format(*found[f"{prefix}steps"])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Alternate the sides, or run one side for one seed in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="*", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="torch threads; 0: what each library uses by itself")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings of Surefoot's side")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--run", choices=list(SIDES), help="one run in this process; prints JSON")
    parser.add_argument("--seed", type=int, default=0, help="seed of --run")
    arguments = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    if arguments.run:
        clock = OthersClock([])  # here, because the CPU time of a process that has ended would count as that of others
        result = SIDES[arguments.run](arguments.seed, arguments.threads, settings)
        print(json.dumps({**result, "others_share": round(clock.share(), 3)}))
        return
    before, runs = loadavg(), []
    arguments.output.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for side in arguments.sides:
            own = arguments.set if side == "surefoot" else []
            runs.append(run_apart(side, seed, arguments.threads, own))
            load = summarize_load(before, [run["others_share"] for run in runs])
            result = {
                "command": " ".join(["python -m benchmarks.time_to_score", *sys.argv[1:]]),
                "machine": machine(),
                "load": load.describe(),
                "summary": summary(runs),
                "runs": runs,
            }
            (arguments.output / "cartpole.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            (arguments.output / "cartpole.md").write_text(table(result), encoding="utf-8")
    print(table(result))


if __name__ == "__main__":
    main()
