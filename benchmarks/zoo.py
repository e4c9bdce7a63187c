"""Trains the policies of the zoo, checks them, and writes their index, their pages and their videos.

    make zoo                                              all presets that are missing or have changed: hours
    python -m benchmarks.zoo --preset Hopper-v5 --seeds 5
    python -m benchmarks.zoo --check                      trains nothing

Every seed is `surefoot train PRESET --seed SEED` on one thread. The seed with the best mean reward is shipped in
src/surefoot/zoo, and its score there comes from other episodes than those that chose it. A finished seed is kept in
benchmarks/results/zoo and not trained again, unless its preset has changed; a run that was interrupted is resumed.
At the end every policy is evaluated from its file, and must reach its score bit for bit.
"""

import argparse
import json
import runpy
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps, ImageSequence

from benchmarks.kept_runs import KeptRuns
from benchmarks.learning import TASKS as LEARNING
from benchmarks.learning import curve_of, surefoot
from benchmarks.published import TASKS as PUBLISHED
from surefoot.api import PPO
from surefoot.benchmark.report import machine
from surefoot.errors import ConfigError, SurefootError
from surefoot.models import find_model
from surefoot.presets import configured, load_preset, preset_names
from surefoot.training.checkpoint import read_checkpoint, write_checkpoint
from surefoot.training.policy_only import policy_only
from surefoot.training.run_directory import RunDirectory
from surefoot.zoo import INDEX, PREFIX, SUFFIX, folder

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "zoo"
RUNS = ROOT / "runs" / "zoo"
GALLERY = ROOT / "docs" / "gallery"
EPISODES = 100
LONG_EPISODES = {"ALE/Pong-v5": 20}
"""Numbers of episodes of presets whose episodes take a minute."""
CHOOSING_SEED, STATED_SEED = 1000, 0
VIDEO_STEPS = 300
VIDEO_SIDE, VIDEO_COLORS = 240, 64
TOO_LONG = {
    "muscle-512": "50 million steps: days of training",
    "Humanoid-v5": "10 million steps with one env; zoo:Humanoid-v5/fast is for the same env",
    "Atari": "10 million steps of one game; the game with a policy is ALE/Pong-v5",
}
"""Presets that are trained only when they are named."""
FIXED = ("--train.threads", "1", "--rollout.workers", "1", "--log.console", "off", "--log.tensorboard", "false")
"""What no trained bit depends on."""


@dataclass(frozen=True)
class Task:
    """What is trained; other settings or episodes make another task."""

    preset: str
    settings: dict[str, Any]
    episodes: int = EPISODES

    @property
    def file_stem(self) -> str:
        """For files about it."""
        return self.preset.replace("/", "-")

    @property
    def policy(self) -> Path:
        """The file that is shipped."""
        return folder() / f"{self.preset}{SUFFIX}"

    @property
    def video(self) -> Path:
        """The video of the policy in the gallery."""
        return GALLERY / f"{self.file_stem}.gif"

    def run(self, seed: int) -> Path:
        """The directory of a seed's run; other settings have another one."""
        mark = sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:8]
        return RUNS / f"{self.file_stem}-{mark}-{seed}"


def task_of(preset: str) -> Task:
    return Task(preset, load_preset(preset), LONG_EPISODES.get(preset, EPISODES))


def kept_runs(task: Task, again: bool = False) -> KeptRuns:
    """The finished seeds of a task; those of a preset that has changed since do not count."""
    file = RESULTS / f"{task.file_stem}.json"
    try:
        return KeptRuns(file, task, again)
    except ConfigError:
        print(f"{task.preset}: the preset has changed; its seeds are trained again", flush=True)
        return KeptRuns(file, task, again=True)


def train(task: Task, seed: int) -> Path:
    """Train a seed, or finish its run; returns the run directory."""
    path = task.run(seed)
    total = configured(task.preset).config.train.steps
    run = RunDirectory(path)
    if run.saved() and int(run.saved()[0].stem.removeprefix("step_")) >= total and run.best.exists():
        return path
    if run.holds_run:
        surefoot("resume", str(path))
    else:
        surefoot("train", task.preset, "--seed", str(seed), "--run-dir", str(path), *FIXED)
    return path


def evaluated(model: Path | str, seed: int, episodes: int, *options: str) -> dict[str, Any]:
    """The evaluation of a model in a process of its own."""
    scored = surefoot("evaluate", str(model), "--episodes", str(episodes), "--seed", str(seed), "--json", *options)
    result: dict[str, Any] = json.loads(scored)
    return result


def run_seed(task: Task, seed: int) -> dict[str, Any]:
    """Train and evaluate one seed."""
    run = train(task, seed)
    scored, curve = evaluated(run, CHOOSING_SEED, task.episodes), curve_of(run)
    print(f"{task.preset} seed {seed}: {scored['mean_reward']:.4g} ± {scored['std_reward']:.4g}", flush=True)
    return {
        "seed": seed,
        "mean_reward": scored["mean_reward"],
        "std_reward": scored["std_reward"],
        "train_s": curve[-1][2],
        "curve": curve,
    }


def ship(task: Task, seed: int) -> dict[str, Any]:
    """Write the policy of a seed into the package, with the settings of its preset alone; returns its evaluation."""
    model = find_model(train(task, seed)).file
    state = policy_only(read_checkpoint(model), model)
    state["config"] = configured(task.preset, {"train.seed": seed}).config.model_dump(mode="json")
    task.policy.parent.mkdir(parents=True, exist_ok=True)
    write_checkpoint(task.policy, state)
    scored = evaluated(task.policy, STATED_SEED, task.episodes, "--trust")
    return {"seed": seed, **{key: scored[key] for key in ("mean_reward", "std_reward", "confidence_interval")}}


def record(task: Task) -> None:
    """The video of one episode."""
    agent: Any = PPO.load(task.policy, trust=True)
    if not hasattr(agent, "record"):
        print(f"{task.preset}: no video, because this Surefoot cannot record", flush=True)
        return
    GALLERY.mkdir(parents=True, exist_ok=True)
    try:
        agent.record(task.video, episodes=1, seed=STATED_SEED, max_steps=VIDEO_STEPS)
    except SurefootError as error:  # an env that cannot be drawn has a policy nevertheless
        print(f"{task.preset}: no video: {error}", flush=True)
        return
    shrink(task.video)


def shrink(video: Path) -> None:
    """Fit a GIF into the square that all pictures of the gallery have, with fewer colors to keep the page small."""
    with Image.open(video) as gif:
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(gif)]
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]
    corner = frames[0].crop((frames[0].width - 1, 0, frames[0].width, 1)).tobytes()
    frames = [ImageOps.pad(frame, (VIDEO_SIDE, VIDEO_SIDE), color=tuple(corner)) for frame in frames]
    small = [frame.quantize(VIDEO_COLORS, dither=Image.Dither.NONE) for frame in frames]
    small[0].save(video, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True)


def complete(task: Task, seeds: int, again: bool) -> None:
    """Train what is missing of a task, and ship its best seed."""
    before, kept = {} if again else saved_results(task), kept_runs(task, again)
    for seed in range(seeds):
        if not kept.has(seed=seed):
            kept.add(run_seed(task, seed))
    best = max(kept.runs, key=lambda run: run["mean_reward"])["seed"]
    shipped = before.get("shipped")
    if shipped is None or shipped["seed"] != best or not task.policy.exists():
        shipped = ship(task, best)
        task.video.unlink(missing_ok=True)
    if not task.video.exists():
        record(task)
    command = f"python -m benchmarks.zoo --preset {task.preset} --seeds {len(kept.runs)}"
    kept.write({"command": command, "machine": machine(), "shipped": shipped})


def saved_results(task: Task) -> dict[str, Any]:
    """The results file of a task; empty if there is none, or one of other settings."""
    file = RESULTS / f"{task.file_stem}.json"
    saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return saved if saved.get("task", {}).get("settings") == json.loads(json.dumps(task.settings)) else {}


def write_index() -> None:
    """The package's index of all policies, and what is missing with its reason; then the pages that show it."""
    policies, missing = {}, {}
    for name in preset_names():
        task = task_of(name)
        saved = saved_results(task)
        if "shipped" in saved and task.policy.exists():
            policies[name] = entry(task, saved)
        else:
            missing[name] = TOO_LONG.get(name, "not trained yet")
            task.policy.unlink(missing_ok=True)
    text = json.dumps({"policies": policies, "missing": missing}, indent=1, ensure_ascii=False)
    (folder() / INDEX).write_text(text + "\n", encoding="utf-8")
    page = runpy.run_path(str(ROOT / "docs" / "zoo_page.py"))
    page["write"]()


def entry(task: Task, saved: dict[str, Any]) -> dict[str, Any]:
    """What the index has about a policy."""
    config, runs, shipped = configured(task.preset).config, saved["runs"], saved["shipped"]
    return {
        "env": config.env.id,
        "steps": runs[0]["curve"][-1][0],
        "seconds": statistics.median(run["train_s"] for run in runs),
        "seeds": {run["seed"]: run["mean_reward"] for run in sorted(runs, key=lambda run: run["seed"])},
        **{key: shipped[key] for key in ("seed", "mean_reward", "std_reward")},
        "interval": shipped["confidence_interval"],
        **{"episodes": task.episodes, "evaluation_seed": STATED_SEED},
        **references(task.preset),
    }


def references(preset: str) -> dict[str, str]:
    """What the seeds must reach in the learning benchmarks, and what others published."""
    for other in PUBLISHED:
        if other.name == preset:
            return {"required": f"{other.gate:g}, median", "published": other.published}
    for task in LEARNING:
        if task.preset == preset and task.memory:
            needs = "every seed" if task.needs == "all" else task.needs
            return {"required": f"{task.threshold:g}, {needs}", "published": task.published}
    return {}


def check(presets: Sequence[str]) -> list[str]:
    """Evaluate policies from their files; returns those that do not reach their score bit for bit."""
    policies = json.loads((folder() / INDEX).read_text(encoding="utf-8"))["policies"]
    wrong = []
    for name in presets:
        if name not in policies:
            print(f"{name}: missing", flush=True)
            continue
        stated = policies[name]
        scored = evaluated(f"{PREFIX}{name}", stated["evaluation_seed"], stated["episodes"])
        is_same = all(scored[key] == stated[key] for key in ("mean_reward", "std_reward"))
        print(f"{name}: {scored['mean_reward']:.6g}, {'as stated' if is_same else 'NOT as stated'}", flush=True)
        if not is_same:
            wrong.append(f"{name} reaches {scored['mean_reward']}, not {stated['mean_reward']}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", nargs="*", choices=preset_names(), metavar="PRESET", help="only these presets")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--again", action="store_true", help="also train seeds that are finished")
    parser.add_argument("--check", action="store_true", help="only evaluate the policies that are there")
    arguments = parser.parse_args()
    if not arguments.check:
        for name in arguments.preset or [name for name in preset_names() if name not in TOO_LONG]:
            complete(task_of(name), arguments.seeds, arguments.again)
            write_index()
    wrong = check(arguments.preset or preset_names())
    print("\n".join(wrong) or "all policies reach their scores bit for bit")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
