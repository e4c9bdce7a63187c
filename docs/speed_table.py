"""Writes the speed tables of README and docs/results.md from the committed results: python docs/speed_table.py"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SPEED = ROOT / "benchmarks" / "results" / "speed"
RESULTS = (SPEED / "peers.json", SPEED / "peers-memory" / "peers.json")
"""All tasks in one run; if the second file exists, its recurrent task replaces the one in the first."""
BEGIN, END = "<!-- speed: begin -->\n", "<!-- speed: end -->\n"
OURS = {
    "native": "Surefoot `native`",
    "local": "Surefoot `local`",
    "processes": "Surefoot `processes`",
}
THEIRS = {
    "sb3": "SB3",
    "sb3-subproc": "SB3 subproc",
    "envpool": "EnvPool loop",
    "skrl": "skrl",
    "rsl-rl": "RSL-RL",
}
OVER = ("sb3", "envpool")
"""Sides that the ratios compare with."""
RECURRENT = "sb3-contrib"
"""Side that the ratios of recurrent policies compare with."""
MISSING = "\N{EN DASH}"


def table(results: dict[str, Any]) -> str:
    """Markdown: steps per second of every side, and the ratios of our fastest engine."""
    tasks = [entry for entry in results["tasks"] if "sb3" in rates(entry)]
    measured = {name for entry in tasks for name in rates(entry)}
    sides = {name: title for name, title in (OURS | THEIRS).items() if name in measured}
    titles = [*sides.values(), *(f"over {THEIRS[name].removesuffix(' loop')}" for name in OVER)]
    lines = [f"| task | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for entry in tasks:
        task = entry["task"]
        cells = [_rate(rates(entry).get(side)) for side in sides] + _ratios(entry)
        lines.append(f"| {task['env']}, {task['num_envs']} x {task['num_steps']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def memory_table(results: dict[str, Any]) -> str:
    """Markdown: tasks for recurrent policies, each of our engines over sb3-contrib; empty if none was measured."""
    tasks = [entry for entry in results["tasks"] if entry["task"].get("lstm") and RECURRENT in rates(entry)]
    sides = {name: title for name, title in OURS.items() if any(name in rates(entry) for entry in tasks)}
    titles = [*sides.values(), f"{RECURRENT} RecurrentPPO", *(f"`{name}` over {RECURRENT}" for name in sides)]
    lines = [f"| recurrent policy | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for entry in tasks:
        task, ratios = entry["task"], _ratios_over(RECURRENT, entry)
        cells = [_rate(rates(entry).get(side)) for side in (*sides, RECURRENT)] + [
            _times(ratios.get(side)) for side in sides
        ]
        size = f"{task['num_envs']} x {task['num_steps']}"
        lines.append(f"| {task['env']}, {size}, LSTM {task['lstm']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" if tasks else ""


def rates(entry: dict[str, Any]) -> dict[str, float]:
    """Steps per second of every side that ran."""
    return {one["name"]: one["steps_per_s"]["median"] for one in entry["subjects"] if "steps_per_s" in one}


def _fastest(entry: dict[str, Any]) -> str:
    found = rates(entry)
    return max((name for name in OURS if name in found), key=found.__getitem__)


def _ratios(entry: dict[str, Any]) -> list[str]:
    ours = _fastest(entry)
    ratios = {ratio["theirs"]: ratio["end_to_end"] for ratio in entry["ratios"] if ratio["ours"] == ours}
    return [_times(ratios.get(name)) for name in OVER]


def _ratios_over(theirs: str, entry: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {ratio["ours"]: ratio["end_to_end"] for ratio in entry["ratios"] if ratio["theirs"] == theirs}


def _rate(rate: float | None) -> str:
    return MISSING if rate is None else f"{rate:,.0f}"


def _times(ratio: dict[str, float] | None) -> str:
    return MISSING if ratio is None else f"**{ratio['median']:.2f}** ({ratio['low']:.2f} to {ratio['high']:.2f})"


def short_table(results: list[dict[str, Any]]) -> str:
    """Markdown for README: our fastest engine beside Stable-Baselines3, or sb3-contrib for recurrent policies."""
    lines = ["| task | Surefoot | SB3 | speedup |", "|---|---:|---:|---:|"]
    for is_recurrent, peer, one in ((False, "sb3", results[0]), (True, RECURRENT, results[-1])):
        for entry in one["tasks"]:
            task, found = entry["task"], rates(entry)
            if peer in found and bool(task.get("lstm")) == is_recurrent:
                ours = _fastest(entry)
                name = f"{task['env']}, {task['num_envs']} x {task['num_steps']}" + ", LSTM" * is_recurrent
                times = _ratios_over(peer, entry)[ours]["median"]
                lines.append(f"| {name} | {_rate(found[ours])} | {_rate(found[peer])} | **{times:.1f}x** |")
    return "\n".join(lines) + "\n"


def written(page: Path, tables: str) -> str:
    """A page with its tables replaced."""
    head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + tables + END + rest.partition(END)[2]


def pages() -> dict[Path, str]:
    """Each page, with the tables of the results that exist."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in RESULTS if file.exists()]
    tables = [table(found[0]), *[each for each in map(memory_table, reversed(found)) if each][:1]]
    all_tables = {ROOT / "README.md": short_table(found), ROOT / "docs" / "results.md": "\n".join(tables)}
    return {page: written(page, text) for page, text in all_tables.items()}


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")
