"""Writes the tables of docs/zoo.md and docs/results.md from the zoo's index: python docs/zoo_page.py"""

import json
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from surefoot.zoo import INDEX, ZooEntry, entry_of, folder, rounded

ROOT = Path(__file__).parent.parent
RESULTS, PAGE, GALLERY = (ROOT / "docs" / name for name in ("results.md", "zoo.md", "gallery"))
LEARNING = ROOT / "benchmarks" / "results" / "learning"
PER_ROW = 3
BEGIN, END = "<!-- zoo: begin -->\n", "<!-- zoo: end -->\n"


def read() -> tuple[list[ZooEntry], dict[str, str]]:
    """All policies, and the presets without one."""
    index: dict[str, Any] = json.loads((folder() / INDEX).read_text(encoding="utf-8"))
    policies: Mapping[str, Mapping[str, Any]] = index["policies"]
    return [entry_of(name, policies[name]) for name in sorted(policies)], index["missing"]


def learning_table() -> str:
    """For docs/results.md: every seed beside what is required and published."""
    lines = ["| preset | steps | Surefoot, per seed | required | published |", "|---|---:|---|---|---|"]
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
    titles = ("policy", "score", "95% interval", "mean ± std (seeds)", "seed", "steps", "seconds")
    lines = [_row(*titles), "|---|" + "---:|" * (len(titles) - 1)]
    entries, missing = read()
    for entry in entries:
        low, high = map(rounded, entry.interval)
        std = "" if entry.std_of_seeds is None else f" ± {rounded(entry.std_of_seeds)}"
        cells = (
            f"`zoo:{entry.preset}`",
            f"**{rounded(entry.mean_reward)}**",
            f"{low} to {high}",
            f"{rounded(entry.mean_of_seeds)}{std} ({len(entry.seeds)})",
            f"{entry.seed}",
            f"{entry.steps:,}",
            f"{entry.seconds:,.0f}",
        )
        lines.append(_row(*cells))
    if missing:
        lines += ["", "Presets without a policy:", ""]
        lines += [f"* `{name}`: {reason}" for name, reason in sorted(missing.items())]
    return "\n".join([*lines, *_videos(entries), ""])


def _videos(entries: list[ZooEntry]) -> list[str]:
    """A table of pictures with captions: forges show no other grid."""
    shown = [_picture(entry) for entry in entries if _file(entry).exists()]
    rows = [["<tr>", *shown[first : first + PER_ROW], "</tr>"] for first in range(0, len(shown), PER_ROW)]
    return ["", "## Gallery", "", '<table class="gallery">', *chain(*rows), "</table>"] if shown else []


def _picture(entry: ZooEntry) -> str:
    image = f'<img src="gallery/{_file(entry).name}" alt="{entry.preset}" width="240" height="240">'
    return f'<td align="center">{image}<br><b>{entry.preset}</b><br>score {rounded(entry.mean_reward)}</td>'


def _file(entry: ZooEntry) -> Path:
    return GALLERY / f"{entry.preset.replace('/', '-')}.gif"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def written(page: Path, table: str) -> str:
    """A page with its table replaced."""
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + table + END + rest.partition(END)[2]


def pages() -> dict[Path, str]:
    """Each page, as it should be."""
    return {RESULTS: written(RESULTS, learning_table()), PAGE: written(PAGE, zoo_table())}


def write() -> None:
    """Replace the tables."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
