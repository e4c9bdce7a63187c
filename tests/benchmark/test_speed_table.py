"""The speed tables: sides that were measured, and dashes where one failed or does not do the task."""

import json
import runpy
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "docs" / "speed_table.py"


def entry(env: str, rates: dict[str, float | None], **more: int) -> dict[str, Any]:
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
    return {"task": {"env": env, "num_envs": 8, "num_steps": 64, **more}, "subjects": subjects, "ratios": ratios}


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


MEMORY = {"native": 12000.0, "local": 5000.0, "sb3-contrib": 1000.0, "processes": None}


def test_memory_has_a_table_of_its_own() -> None:
    script = runpy.run_path(str(SCRIPT))
    tasks = [
        entry("CartPole-v1", {"native": 4000, "local": 1500, "sb3": 1000}, lstm=0),
        entry("Masked-v0", {"local": 1500, "sb3-contrib": 1000}),  # as results were before there was memory
        entry("CartPoleNoVel-v1", MEMORY, lstm=64),
    ]
    assert script["memory_table"]({"tasks": tasks}).splitlines() == [
        "| recurrent policy | Surefoot `native` | Surefoot `local` | sb3-contrib RecurrentPPO |"
        " `native` over sb3-contrib | `local` over sb3-contrib |",
        "|---|---:|---:|---:|---:|---:|",
        "| CartPoleNoVel-v1, 8 x 64, LSTM 64 | 12,000 | 5,000 | 1,000 | **12.00** (11.50 to 12.50) |"
        " **5.00** (4.50 to 5.50) |",
    ]
    assert "NoVel" not in script["table"]({"tasks": tasks})
    assert script["memory_table"]({"tasks": tasks[:2]}) == ""


def test_memory_of_a_run_of_its_own_counts(tmp_path: Path) -> None:
    """The pages get the tables of the files that are there."""
    script = runpy.run_path(str(SCRIPT))
    place = script["pages"].__globals__
    files = (tmp_path / "peers.json", tmp_path / "memory.json")
    place.update(ROOT=tmp_path, RESULTS=files)
    results, readme = tmp_path / "docs" / "results.md", tmp_path / "README.md"
    results.parent.mkdir()
    for page in (results, readme):
        page.write_text(f"above\n{script['BEGIN']}old\n{script['END']}below\n")

    def written() -> str:
        return str(script["pages"]()[results])

    plain, slow = entry("CartPole-v1", {"native": 4000, "sb3": 1000}), entry("M-v1", {**MEMORY, "native": 900}, lstm=64)
    files[0].write_text(json.dumps({"tasks": [plain]}))
    assert "recurrent policy" not in written()
    files[0].write_text(json.dumps({"tasks": [plain, slow]}))
    assert "| M-v1, 8 x 64, LSTM 64 | 900 |" in written()
    files[1].write_text(json.dumps({"tasks": [entry("M-v1", MEMORY, lstm=64)]}))
    text = written()
    assert text.startswith("above\n<!-- speed: begin -->\n| task |")
    assert text.endswith("<!-- speed: end -->\nbelow\n")
    assert text.count("recurrent policy") == 1
    assert "\n\n| recurrent policy |" in text
    assert "| M-v1, 8 x 64, LSTM 64 | 12,000 |" in text
    assert script["pages"]()[readme].splitlines()[4:6] == [
        "| CartPole-v1, 8 x 64 | 4,000 | 1,000 | **4.0x** |",
        "| M-v1, 8 x 64, LSTM | 12,000 | 1,000 | **12.0x** |",
    ]
