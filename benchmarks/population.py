"""A population finds a learning rate that a single run was not given, and survives kills with the same bits.

    python -m benchmarks.population            CartPole-v1 with a learning rate 30 times too low or too high, 3 seeds
    python -m benchmarks.population --kills 5  as many kills of members, and of the coordinator, at random moments

Single runs train with the learning rate of the preset and with the wrong one, for as many steps as tell them apart.
Populations of 4 start with the wrong rate in all members, and train each of them for as many steps. All run with one
thread, and play 100 episodes of `surefoot evaluate` at the end: the last policy of a single run, and the last of the
population's winner. Results go to benchmarks/results/population/; finished runs are not repeated.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import psutil
import yaml

from surefoot.benchmark.report import machine
from surefoot.population.log import read_rounds
from surefoot.population.replay import lineage

RESULTS = Path(__file__).parent / "results" / "population"
LR = 0.003
CASES = {"too low": (LR / 30, 40_960, 4), "too high": (LR * 30, 98_304, 4)}
"""Learning rate, steps, and iterations per round."""
SETTINGS: dict[str, Any] = {
    "preset": "none",
    "env": {"id": "CartPole-v1"},
    "rollout": {"num_envs": 16, "num_steps": 64},
    "ppo": {"batch_size": 256, "epochs": 6, "gamma": 0.98, "gae_lambda": 0.98, "clip": 0.3},
    "train": {"threads": 1, "eval_episodes": 0},
    "log": {"tensorboard": False, "console": "plain"},
}
POPULATION: dict[str, Any] = {
    "members": 4,
    "truncation": 0.5,
    "start": "config",
    "tunables": {"optimizer.lr": {"low": 1e-5, "high": 0.1, "scale": "log", "factor": 5.0, "resample": 0.25}},
    "episodes": 16,
}
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
_SUREFOOT = (sys.executable, "-c", "import sys; from surefoot.cli.main import main; sys.exit(main())")


def surefoot(*arguments: object) -> str:
    """Run a command to its end."""
    command = [*_SUREFOOT, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=ONE_THREAD).stdout


def score(model: Path) -> float:
    """Mean reward over 100 episodes."""
    return float(json.loads(surefoot("evaluate", model, "--episodes", 100, "--json"))["mean_reward"])


def single(folder: Path, case: str, seed: int, is_tuned: bool) -> dict[str, Any]:
    """One run, with the right or the wrong learning rate."""
    lr, steps, _ = CASES[case]
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(SETTINGS | {"optimizer": {"lr": LR if is_tuned else lr}}))
    surefoot("train", "--config", config, "--seed", seed, "--steps", steps, "--run-dir", folder / "run")
    return {"score": score(folder / "run")}


def population(folder: Path, case: str, seed: int) -> dict[str, Any]:
    """A population whose members all start with the wrong learning rate."""
    lr, steps, iterations = CASES[case]
    config = folder / "config.yaml"
    # In one process: the same bits, without imports in every round.
    section = {**POPULATION, "seed": seed, "iterations": iterations, "backend": "inline"}
    train = {**SETTINGS["train"], "steps": steps, "seed": 100 * seed}
    config.write_text(yaml.safe_dump({**SETTINGS, "train": train, "optimizer": {"lr": lr}, "population": section}))
    surefoot("population", config, "--run-dir", folder / "population")
    ancestors = lineage(read_rounds(folder / "population" / "population.jsonl"))
    rates = [float(f"{entry.values['optimizer.lr']:.3g}") for entry in ancestors]
    winner = folder / "population" / "members" / f"{ancestors[-1].member:02d}"
    return {"score": score(winner), "lr of the winner": rates}


def learn(seeds: int) -> None:
    """All runs that are not in the results yet."""
    file = RESULTS / "cartpole.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"machine": machine(), "runs": {}}
    kinds: dict[str, Callable[[Path, str, int], dict[str, Any]]] = {
        "single, tuned": partial(single, is_tuned=True),
        "single": partial(single, is_tuned=False),
        "population": population,
    }
    for seed, case, kind in product(range(seeds), CASES, kinds):
        runs = found["runs"].setdefault(case, {}).setdefault(kind, {})
        if str(seed) in runs:
            continue
        with tempfile.TemporaryDirectory() as folder:
            runs[str(seed)] = kinds[kind](Path(folder), case, seed)
        print(f"seed {seed}  {case:8s} {kind:14s} {runs[str(seed)]['score']:6.1f}", flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "README.md").write_text(_page(found["runs"]))


def _page(found: dict[str, Any]) -> str:
    lines = [
        *("# Populations", "", "Mean reward over 100 episodes on CartPole-v1 at the end, per seed; written by"),
        *(
            "`python -m benchmarks.population`. All four members of a population start with the wrong learning rate.",
            "",
        ),
        "| learning rate | steps per member | single run, tuned | single run | population | rates of the winner |",
        "|---|---|---|---|---|---|",
    ]
    for case, (lr, steps, _) in CASES.items():
        cells = [", ".join(f"{run['score']:.0f}" for run in runs.values()) for runs in found[case].values()]
        rates = "; ".join(" ".join(_steps(run["lr of the winner"])) for run in found[case]["population"].values())
        lines.append(f"| {lr:g}: 30 times {case} | {steps:,} | {' | '.join(cells)} | {rates} |")
    notes = (
        "The numbers of steps and the length of the rounds were chosen after trials with seed 0: at 98,304 steps a",
        "single run with the lower rate is solved, too, and with rounds of 6 iterations the population with the higher",
        "rate reached 365. `kills.json`: members and the coordinator were killed at random moments, and the log had",
        "the same bits as without kills.",
    )
    return "\n".join([*lines, "", *notes, ""])


def _steps(rates: list[float]) -> list[str]:
    """Each rate once, as long as it stays the same."""
    return [f"{rate:g}" for rate, _ in groupby(rates)]


def kill(count: int, seed: int) -> None:
    """Kill members and the coordinator at random moments; the log must be that of an undisturbed population."""
    pick = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, config = Path(name), Path(name) / "config.yaml"
        section = {**POPULATION, "members": 2, "iterations": 20}
        train = {**SETTINGS["train"], "steps": 5 * 20 * 1024, "checkpoint_every": 4096}
        config.write_text(yaml.safe_dump({**SETTINGS, "train": train, "population": section}))
        began = time.monotonic()
        surefoot("population", config, "--run-dir", folder / "whole")
        lasted = time.monotonic() - began
        kills = [name for name in ("member", "coordinator") for _ in range(count)]
        pick.shuffle(kills)
        done: list[str] = []
        while True:
            command = [*_SUREFOOT, "population", str(config), "--run-dir", str(folder / "killed")]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ONE_THREAD)
            while kills and process.poll() is None and kills[0] == "member":
                time.sleep(pick.uniform(0, lasted / (3 * count)))
                members = psutil.Process(process.pid).children()
                if members:
                    pick.choice(members).send_signal(signal.SIGKILL)
                    done.append(kills.pop(0))
            if not kills or process.poll() is not None:
                break
            time.sleep(pick.uniform(0, lasted / (3 * count)))
            process.kill()
            process.wait()
            done.append(kills.pop(0))
        code = process.wait()
        logs = [(folder / which / "population.jsonl").read_bytes() for which in ("whole", "killed")]
        result = {
            "machine": machine(),
            "killed members": done.count("member"),
            "killed coordinators": done.count("coordinator"),
            "exit code": code,
            "same bits": logs[0] == logs[1],
        }
        print(json.dumps({key: value for key, value in result.items() if key != "machine"}))
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "kills.json").write_text(json.dumps(result, indent=1) + "\n")
        assert logs[0] == logs[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kills", type=int, default=0)
    given = parser.parse_args()
    if given.kills:
        kill(given.kills, seed=0)
    else:
        learn(given.seeds)
