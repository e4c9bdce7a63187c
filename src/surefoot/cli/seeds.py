"""`surefoot train ... --seeds 1,2,3` and `surefoot resume FOLDER` of several seeds."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from surefoot.cli.lines import tell, tell_next
from surefoot.errors import ConfigError
from surefoot.presets import Configured
from surefoot.settings.layers import Raw

if TYPE_CHECKING:
    from surefoot.seeds.coordinator import Outcome
    from surefoot.seeds.plan import SeedsPlan

REPORT = "report.html"


def train_new(run: Configured, seeds: str, name: str | None, run_dir: Path | None, command: tuple[str, ...]) -> int:
    """Train several seeds, or what is missing of them; returns the exit code."""
    from surefoot.seeds.plan import new_plan, parse_seeds
    from surefoot.training.run_directory import folder_name

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("--seeds: cannot be combined with torchrun; start it without torchrun, or pass one --seed")
    wanted = parse_seeds(seeds)
    folder = run_dir or Path("runs") / f"{folder_name(name or run.config.env.id)}-seeds"
    return _train(new_plan(folder, run.config, wanted, command), run.line)


def train_missing(folder: Path, changes: Raw, command: tuple[str, ...]) -> int:
    """Continue the seeds of a folder that have not finished; returns the exit code."""
    from surefoot.seeds.plan import read_plan

    return _train(read_plan(folder, changes, command))


def _train(plan: "SeedsPlan", preset: str = "") -> int:
    from surefoot.seeds.coordinator import check, train_seeds
    from surefoot.seeds.display import build_display

    check(plan.config)
    count = len(plan.seeds)
    if preset:
        tell("preset", preset)
    threads = plan.config.train.threads
    share = f"{plan.slots} at a time with {threads} thread{'s' * (threads > 1)} each"
    tell("seeds", f"{count} in {plan.folder}, {share}")
    display = build_display(plan, f"{plan.config.env.id} · {count} seeds · {plan.folder}")
    try:
        outcome = train_seeds(plan, display)
    finally:
        display.close()
    return _conclude(plan, outcome)


def _conclude(plan: "SeedsPlan", outcome: "Outcome") -> int:
    """Print the table, write the report, and say what failed or is missing."""
    from surefoot.cli.report import print_written
    from surefoot.inspection.compare.table import print_seeds
    from surefoot.inspection.seeds_folder import runs_in

    folder, missing = plan.folder, [seed for seed in plan.seeds if seed not in outcome.finished]
    if any(plan.directory_of(seed) in runs_in(folder) for seed in plan.seeds):
        print_seeds(folder)
        print_written(folder / REPORT, [folder])
    for seed, error in outcome.errors.items():
        print(f"error: seed {seed}: {error}", file=sys.stderr)
    if missing:
        named = ", ".join(map(str, missing))
        tell("missing", f"seed{'s' * (len(missing) > 1)} {named}; 'surefoot resume {folder}' continues them")
    else:
        tell_next(("surefoot", "compare", folder), ("surefoot", "evaluate", plan.directory_of(plan.seeds[0])))
    return outcome.exit_code or int(bool(outcome.errors))
