"""Presets beside published scores, and their seconds beside Stable-Baselines3's on this machine.

    python -m benchmarks.published                     all presets of the table, 3 to 5 seeds each
    python -m benchmarks.published Hopper-v5 --seeds 1
    python -m benchmarks.published Ant-v5 --cpu        on a busy machine: one thread, CPU seconds, without SB3

`surefoot presets` says where the values of a preset come from. Stable-Baselines3 is timed with the same ones in a
shorter run before each seed, from which its seconds for the whole run are extrapolated. Each run has a process of its
own, one at a time. Every finished run is kept in benchmarks/results/published/, and a later call continues with those
that are missing.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kept_runs import KeptRuns, Run
from benchmarks.learning import EPISODES, curve_of, surefoot
from surefoot.benchmark.report import describe_machine, machine
from surefoot.presets import load_preset
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config
from surefoot.statistics.aggregates import aggregate

RESULTS = Path(__file__).parent / "results" / "published"
SB3_STEPS = 20_480
"""Steps of the timed run of Stable-Baselines3, after one rollout that is not timed."""
ONE_THREAD = ["--train.threads", "1", "--rollout.workers", "1"]


@dataclass(frozen=True)
class Task:
    """A preset, its seeds, the score that it must reach, and what others published."""

    name: str
    seeds: int
    gate: float
    published: str
    steps: int = 1_000_000
    has_peer: bool = True
    """Whether Stable-Baselines3 has counterparts of all its settings."""

    @property
    def file(self) -> str:
        """Where its results are."""
        return f"{self.name.replace('/', '-')}.json"


TASKS = [
    Task("HalfCheetah-v5", 5, 5000, "rl-zoo 5819 ± 664, CleanRL 1443 ± 46, Tianshou 5784 ± 1244"),
    Task("Hopper-v5", 3, 2300, "rl-zoo 2410 ± 10, CleanRL 2383 ± 272, Tianshou 2609 ± 701"),
    Task("Walker2d-v5", 3, 3000, "rl-zoo 3479 ± 822, CleanRL 2288 ± 572, Tianshou 3588 ± 757"),
    Task("Walker2d-v5/fast", 3, 3000, "rl-zoo 3479 ± 822, CleanRL 2288 ± 572, Tianshou 3588 ± 757", 600_000),
    Task("Swimmer-v5", 3, 282, "rl-zoo 282 ± 10, Tianshou 67 ± 99"),
    Task("Ant-v5", 2, 1327, "rl-zoo 1327 ± 452, Tianshou 3258 ± 1079"),
    Task("Humanoid-v5/fast", 1, 787, "CleanRL 716 ± 49, Tianshou 787 ± 194 (3M: 1360 ± 573), SF 5439 (10M)", 2_000_000),
    Task("LunarLander-v3", 3, 240, "rl-zoo 242 ± 32", 500_000, has_peer=False),
    Task("InvertedPendulum-v5", 3, 950, "CleanRL 963 ± 22, Tianshou 1000 ± 0", 100_000),
    Task("InvertedDoublePendulum-v5", 3, 9300, "Tianshou 9231 ± 270", 300_000),
    Task("Reacher-v5", 3, -5, "Tianshou -4.1 ± 0.3", 500_000),
    Task("Pusher-v5", 3, -30, "", 500_000),
]


def run_seed(task: Task, seed: int, settings: Sequence[str]) -> Run:
    """Train one seed with all threads and evaluate its final policy; seconds are those of the run's own clock."""
    fixed = ["--log.console", "off", "--train.eval_episodes", "0", "--train.eval_every", "0"]
    length = ["--steps", str(task.steps), "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:
        before_s = _cpu_seconds_of_children()
        surefoot("train", task.name, "--run-dir", folder, *fixed, *length, *settings)
        cpu_s = _cpu_seconds_of_children() - before_s
        scored = json.loads(surefoot("evaluate", folder, "--episodes", str(EPISODES), "--seed", "1000", "--json"))
        curve = curve_of(Path(folder))
    print(f"{task.name} seed {seed}: {scored['mean_reward']:.0f}, {curve[-1][2]:.0f} s, {cpu_s:.0f} CPU s", flush=True)
    return {
        "side": "surefoot",
        "seed": seed,
        "mean_reward": scored["mean_reward"],
        "std_reward": scored["std_reward"],
        "train_s": curve[-1][2],
        "cpu_s": round(cpu_s, 1),
        "curve": curve,
    }


def _cpu_seconds_of_children() -> float:
    """Of the processes that have ended: unlike the wall clock, hardly longer on a busy machine."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def time_sb3(task: Task, seed: int, steps: int) -> Run:
    """Seconds of a short run of Stable-Baselines3, in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, "--sb3", task.name, "--sb3-steps", str(steps), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Stable-Baselines3 failed at {task.name}: {done.stderr}")
    timed: Run = {"side": "sb3", "seed": seed, **json.loads(done.stdout.splitlines()[-1])}
    whole_s = timed["seconds"] * task.steps / timed["steps"]
    print(f"{task.name} sb3: {timed['seconds']:.1f} s for {timed['steps']:,} steps, so {whole_s:.0f} s", flush=True)
    return {**timed, "train_s": round(whole_s, 1)}


def run_sb3(name: str, seed: int, steps: int) -> dict[str, float]:
    """Time `learn` after one untimed rollout and update."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    config = build_config(load_preset(name))
    env = VecNormalize(make_vec_env(config.env.id, n_envs=config.rollout.num_envs, seed=seed), gamma=config.ppo.gamma)
    model = PPO("MlpPolicy", env, seed=seed, device="cpu", **sb3_settings(config))
    model.learn(config.rollout.size)
    began, before = time.perf_counter(), model.num_timesteps
    model.learn(steps, reset_num_timesteps=False)
    taken_s = time.perf_counter() - began
    env.close()
    return {"seconds": round(taken_s, 2), "steps": model.num_timesteps - before}


def _learning_rate(config: Config) -> Any:
    """Constant, or falling to 0."""
    lr = config.optimizer.lr
    return (lambda left: left * lr) if "lr" in config.schedules else lr


def sb3_settings(config: Config) -> dict[str, Any]:
    """A preset in Stable-Baselines3's words."""
    from torch import nn

    ppo, policy, layers = config.ppo, config.policy, list(config.policy.hidden)
    log_std = getattr(policy.distribution, "log_std", 0.0)
    return {
        **{"n_steps": config.rollout.num_steps, "batch_size": ppo.batch_size, "n_epochs": ppo.epochs},
        **{"gamma": ppo.gamma, "gae_lambda": ppo.gae_lambda, "clip_range": ppo.clip, "ent_coef": ppo.entropy_coef},
        **{"vf_coef": ppo.value_coef, "max_grad_norm": ppo.max_grad_norm, "learning_rate": _learning_rate(config)},
        "policy_kwargs": {
            "net_arch": {"pi": layers, "vf": layers},
            "activation_fn": {"tanh": nn.Tanh, "relu": nn.ReLU}[policy.activation],
            "ortho_init": policy.orthogonal_init,
            "log_std_init": log_std,
        },
    }


def compare(task: Task, arguments: argparse.Namespace) -> None:
    """Run what is missing of a task."""
    kept = KeptRuns(arguments.output / task.file, task, arguments.again)
    for seed in range(task.seeds if arguments.seeds is None else arguments.seeds):
        if task.has_peer and not arguments.cpu and not kept.has(side="sb3", seed=seed):
            kept.add(time_sb3(task, seed, arguments.sb3_steps))
        if not kept.has(side="surefoot", seed=seed):
            run = run_seed(task, seed, [*arguments.set, *(ONE_THREAD if arguments.cpu else [])])
            kept.add({key: value for key, value in run.items() if key != "train_s"} if arguments.cpu else run)
    kept.write({"command": f"python -m benchmarks.published {task.name}", "machine": machine()})


def table(folder: Path) -> str:
    """All results as Markdown."""
    lines = [
        "# Presets beside published scores",
        "",
        f"{describe_machine(machine())}.",
        "",
        f"Final policy, deterministic, {EPISODES} episodes: mean over the seeds with its 95 % bootstrap interval.",
        "Protocols of published scores differ: rl-zoo is one run, evaluated deterministically; CleanRL the final",
        "training return of 3 seeds, Tianshou the best test return of 10 seeds, at 1M steps. Seconds are medians: wall",
        "clock with all threads, or CPU seconds of one thread if the machine was busy. Those of Stable-Baselines3",
        "(SB3) are **extrapolated** from a shorter measured run with the same hyperparameters. Reproduce a row with",
        "`python -m benchmarks.published PRESET` (`--cpu` for CPU seconds).",
        "",
        "| preset | steps | score of each seed | mean | must reach (median) | published | seconds | SB3, extrapolated "
        "seconds (measured steps) |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        file = folder / task.file
        saved = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"runs": []}
        ours = [run for run in saved["runs"] if run["side"] == "surefoot"]
        theirs = [run for run in saved["runs"] if run["side"] == "sb3"]
        if not ours:
            continue
        scores = [run["mean_reward"] for run in ours]
        mean, low, high = aggregate([scores]).mean
        reached = "reached" if statistics.median(scores) >= task.gate else "missed"
        cells = [
            task.name,
            f"{saved['task'].get('steps', task.steps):,}",
            ", ".join(map(_short, scores)),
            f"{_short(mean)} ({_short(low)} to {_short(high)})",
            f"{task.gate:,.0f}: {reached}",
            task.published or "-",
            _median_seconds(ours),
            f"{_median_seconds(theirs)} ({theirs[0]['steps']:,})" if theirs else "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _short(score: float) -> str:
    """With a decimal only where it matters."""
    return f"{score:.1f}" if abs(score) < 100 else f"{score:.0f}"


def _median_seconds(runs: list[Run]) -> str:
    """Of the wall clock; CPU seconds if it was not measured."""
    if all("train_s" in run for run in runs):
        return f"{statistics.median(run['train_s'] for run in runs):,.0f}"
    return f"{statistics.median(run['cpu_s'] for run in runs):,.0f} CPU"


def main() -> None:
    """Run the named presets, or all; or time Stable-Baselines3 in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="presets; all if none is named")
    parser.add_argument("--seeds", type=int, help="number of seeds, instead of the task's own")
    parser.add_argument("--steps", type=int, help="instead of the preset's; for a try")
    parser.add_argument("--cpu", action="store_true", help="busy machine: one thread, CPU seconds, SB3 is not timed")
    parser.add_argument("--sb3-steps", type=int, default=SB3_STEPS, help="steps of each timed run of SB3")
    parser.add_argument("--set", nargs="*", default=[], help="more arguments of surefoot train, as --key=value")
    parser.add_argument("--again", action="store_true", help="run what is already in the results, too")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--sb3", choices=[task.name for task in TASKS], help="time SB3 in this process; prints JSON")
    parser.add_argument("--seed", type=int, default=0, help="seed of --sb3")
    arguments = parser.parse_args()
    if arguments.sb3:
        print(json.dumps(run_sb3(arguments.sb3, arguments.seed, arguments.sb3_steps)))
        return
    unknown = set(arguments.presets) - {task.name for task in TASKS}
    if unknown:
        parser.error(
            f"unknown preset {', '.join(sorted(unknown))}; choose from {', '.join(task.name for task in TASKS)}"
        )
    for task in TASKS:
        if not arguments.presets or task.name in arguments.presets:
            compare(task if arguments.steps is None else replace(task, steps=arguments.steps), arguments)
            (arguments.output / "README.md").write_text(table(arguments.output), encoding="utf-8")


if __name__ == "__main__":
    main()
