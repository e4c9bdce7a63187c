"""Writes the tables of training seconds and of both engines in docs/results.md: python docs/learning_tables.py"""

import json
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results.md"
COMMITTED = ROOT / "benchmarks" / "results"
STEPS = 1_000_000
"""Steps of the tasks that do not say otherwise."""


def published(is_cpu: bool) -> str:
    """Markdown: presets that were timed with all threads, or in CPU seconds of one thread."""
    titles = ["preset", "steps", "score of each seed", "published", "CPU seconds" if is_cpu else "seconds"]
    lines = [_row(*titles, *(() if is_cpu else ("SB3",))), "|---|---:|---|---|---:|" + "---:|" * (not is_cpu)]
    for file in sorted((COMMITTED / "published").glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        task = result["task"]
        ours, theirs = ([run for run in result["runs"] if run["side"] == side] for side in ("surefoot", "sb3"))
        if all("train_s" in run for run in ours) == is_cpu:
            continue
        scores = ", ".join(_short(run["mean_reward"]) for run in ours)
        seconds = [_seconds(ours, "cpu_s")] if is_cpu else [_seconds(ours, "train_s"), _seconds(theirs, "train_s")]
        lines.append(_row(task["name"], f"{task.get('steps', STEPS):,}", scores, task["published"], *seconds))
    return "\n".join(lines) + "\n"


def engines() -> str:
    """Markdown: mean score of the engines `native` and `local`, with the 95% interval over the seeds."""
    lines = ["| task | steps | `native` | `local` |", "|---|---:|---:|---:|"]
    for file in sorted((COMMITTED / "learning_alike").glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        cells = [_mean(result["scores"][side], result["intervals"][side]) for side in ("native", "local")]
        lines.append(_row(result["task"]["name"], f"{result['task']['steps']:,}", *cells))
    return "\n".join(lines) + "\n"


def _mean(scores: list[float], interval: list[float]) -> str:
    low, high = interval
    return f"{fmean(scores):.0f}" + (f" ({low:.0f} to {high:.0f})" if low < high else "")


def _seconds(runs: list[dict[str, Any]], key: str) -> str:
    return f"{median(run[key] for run in runs):,.0f}" if runs else "\N{EN DASH}"


def _short(score: float) -> str:
    return f"{score:.1f}" if abs(score) < 100 else f"{score:.0f}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def pages() -> dict[Path, str]:
    """The page, as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("seconds", published(False)), ("cpu", published(True)), ("engines", engines())):
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        head, _, rest = text.partition(begin)
        text = head + begin + table + end + rest.partition(end)[2]
    return {PAGE: text}


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
