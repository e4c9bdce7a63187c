"""Writes the tables of docs/zoo.md and README's learning results from the zoo's index: python docs/zoo_page.py"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.zoo import INDEX, ZooEntry, entry_of, folder, rounded

ROOT = Path(__file__).parent.parent
README, PAGE, GALLERY = ROOT / "README.md", ROOT / "docs" / "zoo.md", ROOT / "docs" / "gallery"
LEARNING = ROOT / "benchmarks" / "results" / "learning"
BEGIN, END = "<!-- zoo: begin -->\n", "<!-- zoo: end -->\n"


def read() -> tuple[list[ZooEntry], dict[str, str]]:
    """All policies, and the presets without one."""
    index: dict[str, Any] = json.loads((folder() / INDEX).read_text(encoding="utf-8"))
    policies: Mapping[str, Mapping[str, Any]] = index["policies"]
    return [entry_of(name, policies[name]) for name in sorted(policies)], index["missing"]


def learning_table() -> str:
    """For README: every seed beside what is required and published."""
    lines = ["| preset | steps | Surefoot, per seed | required | published |", "|---|---|---|---|---|"]
    for entry in read()[0]:
        scores = ", ".join(map(rounded, entry.seeds.values()))
        lines.append(_row(entry.preset, f"{entry.steps:,}", scores, entry.required, entry.published))
        without = LEARNING / f"{entry.preset}-without-memory.json"
        if without.exists():
            result = json.loads(without.read_text(encoding="utf-8"))
            scores = ", ".join(rounded(run["mean_reward"]) for run in result["runs"])
            steps = f"{result['runs'][0]['curve'][-1][0]:,}"
            required = f"at most {result['task']['threshold']:g}"
            lines.append(_row(f"{entry.preset} without memory", steps, scores, required, ""))
    return "\n".join(lines) + "\n"


def zoo_table() -> str:
    """For docs/zoo.md: scores, cost and commands, then what is missing, then the videos."""
    titles = ("policy", "score (95% interval)", "seeds: mean ± std", "seed", "steps", "seconds", "size")
    lines = [_row(*titles), "|---|---|---|---:|---:|---:|---:|"]
    entries, missing = read()
    for entry in entries:
        low, high = map(rounded, entry.interval)
        std = "" if entry.std_of_seeds is None else f" ± {rounded(entry.std_of_seeds)}"
        cells = (
            f"`zoo:{entry.preset}`",
            f"**{rounded(entry.mean_reward)}** ({low} to {high})",
            f"{len(entry.seeds)}: {rounded(entry.mean_of_seeds)}{std}",
            f"{entry.seed}",
            f"{entry.steps:,}",
            f"{entry.seconds:,.0f}",
            f"{entry.file.stat().st_size / 1000:,.0f} kB",
        )
        lines.append(_row(*cells))
    if missing:
        lines += ["", "Presets without a policy:", ""]
        lines += [f"* `{name}`: {reason}" for name, reason in sorted(missing.items())]
    return "\n".join([*lines, *_videos(entries), ""])


def _videos(entries: list[ZooEntry]) -> list[str]:
    files = {entry.preset: f"{entry.preset.replace('/', '-')}.gif" for entry in entries}
    shown = [f"![{name}](gallery/{file})" for name, file in files.items() if (GALLERY / file).exists()]
    return ["", "## Gallery", "", *shown] if shown else []


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: Path, table: str) -> str:
    """A page with its table replaced."""
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + table + END + rest.partition(END)[2]


def pages() -> dict[Path, str]:
    """Each page, as it should be."""
    return {README: written(README, learning_table()), PAGE: written(PAGE, zoo_table())}


def write() -> None:
    """Replace the tables."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
