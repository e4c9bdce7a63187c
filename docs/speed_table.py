"""Writes README's speed table from the committed results: python docs/speed_table.py"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "speed" / "peers.json"
BEGIN, END = "<!-- speed: begin -->\n", "<!-- speed: end -->\n"
SIDES = {
    "local": "Surefoot `local`",
    "processes": "Surefoot `processes`",
    "sb3": "SB3",
    "sb3-subproc": "SB3 subproc",
    "envpool": "EnvPool loop",
}


def table(results: dict[str, Any]) -> str:
    """Markdown: steps a second of every side, and our better engine over Stable-Baselines3's two."""
    lines = [
        f"| task | {' | '.join(SIDES.values())} | over SB3 | over SB3 subproc |",
        "|---|" + "---:|" * (len(SIDES) + 2),
    ]
    for entry in results["tasks"]:
        rates = {subject["name"]: subject["steps_per_s"]["median"] for subject in entry["subjects"]}
        if "sb3" not in rates:
            continue
        ours = max(("local", "processes"), key=rates.__getitem__)
        ratios = {ratio["theirs"]: ratio["end_to_end"] for ratio in entry["ratios"] if ratio["ours"] == ours}
        task = entry["task"]
        cells = [f"{rates[side]:,.0f}" for side in SIDES]
        cells += [_times(ratios["sb3"]), _times(ratios["sb3-subproc"])]
        lines.append(f"| {task['env']}, {task['num_envs']} x {task['num_steps']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _times(ratio: dict[str, float]) -> str:
    return f"**{ratio['median']:.2f}** ({ratio['low']:.2f} to {ratio['high']:.2f})"


def written() -> str:
    """README with the table of the results that are there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + table(json.loads(RESULTS.read_text(encoding="utf-8"))) + END + tail


if __name__ == "__main__":
    (ROOT / "README.md").write_text(written(), encoding="utf-8")
