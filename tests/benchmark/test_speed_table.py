"""README's table: sides that were measured, and dashes where one failed or does not do the task."""

import runpy
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "docs" / "speed_table.py"


def entry(env: str, rates: dict[str, float | None]) -> dict[str, Any]:
    subjects = [
        {"name": name, "error": "fell over"} if rate is None else {"name": name, "steps_per_s": {"median": rate}}
        for name, rate in rates.items()
    ]
    ours, theirs = (
        [name for name, rate in rates.items() if rate and (name in ("native", "local")) == is_ours]
        for is_ours in (True, False)
    )
    ratios = []
    for mine in ours:
        for other in theirs:
            ratio = (rates[mine] or 0) / (rates[other] or 1)
            found = {"median": ratio, "low": ratio - 0.5, "high": ratio + 0.5}
            ratios.append({"ours": mine, "theirs": other, "end_to_end": found})
    return {"task": {"env": env, "num_envs": 8, "num_steps": 64}, "subjects": subjects, "ratios": ratios}


def test_native_over_stable_baselines3_and_envpool() -> None:
    table = runpy.run_path(str(SCRIPT))["table"]
    tasks = [
        entry("CartPole-v1", {"native": 4000, "local": 1500, "sb3": 1000, "envpool": 2000}),
        entry("Ant-v5", {"native": 3000, "local": None, "sb3": 1000, "envpool": None, "rsl-rl": 500}),
        entry("Masked-v0", {"local": 1500, "sb3-contrib": 1000}),
    ]
    lines = table({"tasks": tasks}).splitlines()
    head = "| task | Surefoot `native` | Surefoot `local` | SB3 | EnvPool loop | RSL-RL | over SB3 | over EnvPool |"
    assert lines[0] == head
    assert lines[2:] == [
        "| CartPole-v1, 8 x 64 | 4,000 | 1,500 | 1,000 | 2,000 | \N{EN DASH} | **4.00** (3.50 to 4.50) |"
        " **2.00** (1.50 to 2.50) |",
        "| Ant-v5, 8 x 64 | 3,000 | \N{EN DASH} | 1,000 | \N{EN DASH} | 500 | **3.00** (2.50 to 3.50) | \N{EN DASH} |",
    ]
