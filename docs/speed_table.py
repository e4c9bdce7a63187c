"""Writes README's speed table from the committed results: python docs/speed_table.py"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "speed" / "peers.json"
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
"""Whom the ratios are about."""
MISSING = "\N{EN DASH}"


def table(results: dict[str, Any]) -> str:
    """Markdown: steps a second of every side, and our fastest engine over those that its ratio is about."""
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


def rates(entry: dict[str, Any]) -> dict[str, float]:
    """Steps a second by side, of those that ran."""
    return {one["name"]: one["steps_per_s"]["median"] for one in entry["subjects"] if "steps_per_s" in one}


def _ratios(entry: dict[str, Any]) -> list[str]:
    found = rates(entry)
    ours = max((name for name in OURS if name in found), key=found.__getitem__)
    ratios = {ratio["theirs"]: ratio["end_to_end"] for ratio in entry["ratios"] if ratio["ours"] == ours}
    return [_times(ratios.get(name)) for name in OVER]


def _rate(rate: float | None) -> str:
    return MISSING if rate is None else f"{rate:,.0f}"


def _times(ratio: dict[str, float] | None) -> str:
    return MISSING if ratio is None else f"**{ratio['median']:.2f}** ({ratio['low']:.2f} to {ratio['high']:.2f})"


def written() -> str:
    """README with the table of the results that are there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + table(json.loads(RESULTS.read_text(encoding="utf-8"))) + END + tail


if __name__ == "__main__":
    (ROOT / "README.md").write_text(written(), encoding="utf-8")
