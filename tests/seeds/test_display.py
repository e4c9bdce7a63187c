"""The display of several seeds in narrow and wide terminals."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from surefoot.seeds.display import LiveDisplay, PlainDisplay, number
from surefoot.seeds.plan import SeedsPlan
from surefoot.settings.layers import build_config

PLAN = SeedsPlan(Path("runs/seeds"), build_config({"train.steps": 1000}), (1, 2, 3))


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_one_line_per_seed_that_fits(width):
    screen = io.StringIO()
    display = LiveDisplay(PLAN, "CartPole-v1 · 3 seeds", Console(file=screen, width=width, force_terminal=True))
    display.progress(1, {"step": 0, "reward": 9.0})
    display.progress(1, {"step": 500, "reward": 21.5, "rate": 900.0, "score": None, "alerts": ["KL high"]})
    display.finished(2, {"step": 1024, "reason": ""})
    display.failed(3, "the cart is broken")
    shown = io.StringIO()
    Console(file=shown, width=width).print(display._table())
    display.close()
    lines = shown.getvalue().splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= width
    assert "50%" in lines[2]
    assert "100%" in lines[3]
    assert "finished" in lines[3]
    assert "failed" in lines[4]
    assert ("steps/s" in lines[1]) is (width >= 80)
    assert ("█" in lines[2]) is (width >= 140), "the trend of the return"
    assert "seed 3: failed: the cart is broken" in screen.getvalue().replace("\n", " ")


def test_plain_lines(capsys):
    display = PlainDisplay(PLAN)
    display.progress(1, {"step": 0})
    display.progress(1, {"step": 32, "reward": 20.0, "rate": 900.0, "score": 9.0, "alerts": ["KL high"]})
    display.progress(1, {"step": 64, "reward": 20.0, "rate": 900.0, "score": 9.0, "alerts": []})
    display.died(2, "its process was ended by signal 9")
    display.finished(1, {"step": 96, "reason": "mean return 475"})
    display.close()
    assert capsys.readouterr().out.splitlines() == [
        "seed 1    32/1,000  return 20  eval 9  ALERT: KL high",
        "seed 2    restarted: its process was ended by signal 9",
        "seed 1    finished at step 96: mean return 475",
    ]


def test_numbers():
    assert [number(one) for one in (None, -1234.5, 0.123456, 99.96)] == ["\N{EN DASH}", "-1,234", "0.1235", "99.96"]
