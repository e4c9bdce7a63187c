"""A population finds a learning rate that a single run was not given, and survives kills with the same bits.

    python -m benchmarks.population            CartPole-v1 with a learning rate 30 times too low and too high, 3 seeds
    python -m benchmarks.population --kills 5  as many kills of members, and of the coordinator, at random moments

For each seed, single runs train with the learning rate of the preset, a 30th of it and 30 times it. Populations of 4
start with the same wrong rates in all members, and train each of them for as many steps. All are `surefoot population`
or `surefoot train` with one thread, and play 100 episodes of `surefoot evaluate` at the end: the last policy of one
run, and the last of the population's winner. Results go to benchmarks/results/population/.
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
from pathlib import Path
from typing import Any

import psutil
import yaml

from surefoot.benchmark.machine import machine
from surefoot.population.log import read_rounds
from surefoot.population.replay import lineage

RESULTS = Path(__file__).parent / "results" / "population"
LR, FACTOR, STEPS = 0.003, 30, 98_304
SETTINGS: dict[str, Any] = {
    "env": {"id": "CartPole-v1"},
    "rollout": {"num_envs": 16, "num_steps": 64},
    "ppo": {"batch_size": 256, "epochs": 6, "gamma": 0.98, "gae_lambda": 0.98, "clip": 0.3},
    "train": {"steps": STEPS, "threads": 1, "eval_episodes": 0},
    "log": {"tensorboard": False, "console": "plain"},
}
POPULATION: dict[str, Any] = {
    "members": 4,
    "iterations": 6,
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


def single(folder: Path, lr: float, seed: int) -> dict[str, Any]:
    """One run."""
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(SETTINGS | {"optimizer": {"lr": lr}}))
    surefoot("train", "--config", config, "--seed", seed, "--run-dir", folder / "run")
    return {"score": score(folder / "run")}


def population(folder: Path, lr: float, seed: int) -> dict[str, Any]:
    """A population whose members all start with the same learning rate."""
    config = folder / "config.yaml"
    section = {**POPULATION, "seed": seed, "backend": "inline"}  # the same bits, without imports in every round
    train = {**SETTINGS["train"], "seed": 100 * seed}
    config.write_text(yaml.safe_dump({**SETTINGS, "train": train, "optimizer": {"lr": lr}, "population": section}))
    surefoot("population", config, "--run-dir", folder / "population")
    ancestors = lineage(read_rounds(folder / "population" / "population.jsonl"))
    rates = [float(f"{entry.values['optimizer.lr']:.3g}") for entry in ancestors]
    return {
        "score": score(folder / "population" / "members" / f"{ancestors[-1].member:02d}"),
        "lr of the winner": rates,
    }


def learn(seeds: int) -> None:
    """All runs that are not in the results yet."""
    file = RESULTS / "cartpole.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"machine": machine(), "runs": {}}
    for seed in range(seeds):
        for name, function, lr in (
            ("single, tuned", single, LR),
            ("single, too low", single, LR / FACTOR),
            ("single, too high", single, LR * FACTOR),
            ("population, too low", population, LR / FACTOR),
            ("population, too high", population, LR * FACTOR),
        ):
            runs = found["runs"].setdefault(name, {})
            if str(seed) not in runs:
                with tempfile.TemporaryDirectory() as folder:
                    runs[str(seed)] = function(Path(folder), lr, seed)
                print(f"seed {seed}  {name:22s} {runs[str(seed)]['score']:6.1f}", flush=True)
                RESULTS.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(found, indent=1) + "\n")


def kill(count: int, seed: int) -> None:
    """Kill members and the coordinator at random moments; the log must be that of an undisturbed population."""
    pick = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, config = Path(name), Path(name) / "config.yaml"
        section = {**POPULATION, "members": 2, "iterations": 20}
        train = {**SETTINGS["train"], "steps": 6 * 20 * 1024, "checkpoint_every": 4096}
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
