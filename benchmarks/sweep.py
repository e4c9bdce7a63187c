"""A sweep of 20 trials on CartPole against the settings of the preset: environment steps to a score of 475.

    python -m benchmarks.sweep [--seeds SEEDS] [--finalists FINALISTS] [--folder FOLDER]

The first trial is drawn like the others, not the preset's own settings. Then the best settings and the preset are
trained with seeds that the sweep has not seen. Results go to benchmarks/results/sweep/, one file per number of seeds
per trial and of finalists. If it is stopped, the same command continues.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from surefoot.benchmark.report import machine
from surefoot.jobs.job import Job
from surefoot.jobs.local import LocalBackend
from surefoot.jobs.pool import Pool
from surefoot.machine.cores import available_cores
from surefoot.presets import configured, load_preset
from surefoot.settings.config import Config
from surefoot.settings.layers import build_config, read_yaml
from surefoot.sweep.directory import BEST, DATABASE
from surefoot.sweep.settings import SweepConfig, read_settings
from surefoot.sweep.study import Study
from surefoot.sweep.sweep import Sweep, objective_of, value_of

RESULTS = Path(__file__).parent / "results" / "sweep"
PRESET, SCORE, UNSEEN = "CartPole-v1", 475.0, range(100, 110)
FINAL_SEEDS = 8
SETTINGS: dict[str, Any] = {
    "trials": 20,
    "baseline": False,
    "objective": {"time_to": {"score": SCORE}},
    "tunables": {
        "optimizer.lr": {"low": 3e-4, "high": 1e-2, "scale": "log"},
        "ppo.gamma": {"low": 0.9, "high": 0.999, "scale": "one_minus"},
        "ppo.gae_lambda": {"low": 0.8, "high": 0.99, "scale": "one_minus"},
        "ppo.clip": {"low": 0.1, "high": 0.4},
        "ppo.epochs": {"low": 2, "high": 16, "integer": True},
        "ppo.batch_size": {"choices": [64, 128, 256, 512]},
        "rollout.num_steps": {"choices": [32, 64, 128]},
    },
}
TRAIN = {"train.eval_every": 2048, "log.tensorboard": False, "train.threads": 1, "rollout.workers": 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="runs per trial")
    parser.add_argument("--finalists", type=int, default=0, help="best trials that are trained again with other seeds")
    parser.add_argument("--folder", type=Path, default=Path("runs/sweep-benchmark"))
    given = parser.parse_args()
    settings = {**SETTINGS, "seeds": given.seeds, "finalists": given.finalists, "final_seeds": FINAL_SEEDS}
    name = f"{given.seeds}" + f"-finalists-{given.finalists}" * (given.finalists > 0)
    folder: Path = given.folder / f"seeds-{given.seeds}"
    config, sweep = read_settings({**load_preset(PRESET), "sweep": settings}, TRAIN)
    best = Sweep(config, sweep, folder).run()
    with Study(folder / DATABASE, sweep) as study:
        trials, shares = study.trials(), study.importances()
    sides = {"preset": config, f"sweep-{name}": configured(None, read_yaml(folder / BEST)).config}
    preset, swept = compare(sides, sweep, given.folder / "unseen").values()
    found = {
        "command": f"python -m benchmarks.sweep --seeds {given.seeds} --finalists {given.finalists}",
        "settings": settings,
        "preset": {key: value_of(config, key) for key in sweep.tunables},
        "best": {"trial": best.number, "objective": best.objective, "final": best.final, "values": best.values},
        "unseen seeds": list(UNSEEN),
        "steps": {"preset": preset, "sweep": swept},
        "importances": shares,
        "trials": [{"values": one.values, "state": one.state, **one.result, "final": one.final} for one in trials],
        "machine": machine(),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{PRESET}-seeds-{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "README.md").write_text(page(), encoding="utf-8")


def compare(sides: dict[str, Config], sweep: SweepConfig, folder: Path) -> dict[str, list[float]]:
    """Steps to the score with each unseen seed."""
    steps: dict[str, dict[int, float]] = {side: {} for side in sides}
    with Pool(LocalBackend(), available_cores(), patience_s=600) as pool:
        for side, config in sides.items():
            for seed in UNSEEN:
                own = build_config(config.model_dump(mode="json"), {"train.seed": seed})
                arguments = {"directory": str((folder / f"{side}-{seed}").resolve()), "episodes": sweep.episodes}
                arguments |= {"config": own.model_dump(mode="json"), "target": SCORE}
                pool.submit(Job(f"{side} {seed}", "surefoot.sweep.trial:train_trial", arguments))
        for event in pool.events():
            if event.error is not None:
                raise event.error
            if event.is_last:
                side, number = event.job.name.split()
                steps[side][int(number)] = objective_of(sweep, event.result, sides[side].train.steps)
                print(f"{event.job.name}: {steps[side][int(number)]:,.0f} steps", flush=True)
    return {side: [own[seed] for seed in UNSEEN] for side, own in steps.items()}


def page() -> str:
    """All results as Markdown."""
    files = [json.loads(file.read_text(encoding="utf-8")) for file in RESULTS.glob(f"{PRESET}-seeds-*.json")]
    files.sort(key=lambda found: (found["settings"]["seeds"], found["settings"].get("finalists", 0)))
    lines = [
        f"# Sweeps of {SETTINGS['trials']} trials against the preset of {PRESET}",
        "",
        f"Environment steps until an evaluation of 20 episodes has a mean reward of {SCORE:g}; evaluated every",
        f"{TRAIN['train.eval_every']:,} steps. The sweeps did not try the preset's own settings first. The table shows",
        f"{len(UNSEEN)} seeds that no sweep has seen, with the standard error of the mean. Repeat with",
        "`python -m benchmarks.sweep --seeds 2`, `--seeds 5` and `--seeds 5 --finalists 5`.",
        "",
        "| settings | in the sweep | mean | median | worst |",
        "|---|---|---|---|---|",
    ]
    for number, found in enumerate(files):
        best = found["best"]
        if number == 0:
            lines.append(_row("preset", "-", found["steps"]["preset"]))
        finals = "" if best.get("final") is None else f", in the finals {best['final']:,.0f}"
        lines.append(_row(_protocol(found), f"{best['objective']:,.0f}{finals}", found["steps"]["sweep"]))
    heads = [_protocol(found) for found in files]
    lines += ["", f"| setting | preset | {' | '.join(heads)} |", f"|{'---|' * (2 + len(files))}"]
    for key, value in files[0]["preset"].items():
        cells = [f"{one:.4g}" for one in (value, *(found["best"]["values"][key] for found in files))]
        lines.append(f"| {key} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _protocol(found: dict[str, Any]) -> str:
    settings = found["settings"]
    finals = f", finals of {settings['finalists']} with {FINAL_SEEDS} others" if settings.get("finalists") else ""
    return f"sweep, {settings['seeds']} seeds per trial{finals}"


def _row(name: str, own: str, steps: list[float]) -> str:
    error = statistics.stdev(steps) / len(steps) ** 0.5
    cells = [f"{statistics.fmean(steps):,.0f} ± {error:,.0f}", f"{statistics.median(steps):,.0f}", f"{max(steps):,.0f}"]
    return f"| {name} | {own} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
