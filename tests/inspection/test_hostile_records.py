"""metrics.jsonl with anything in it: the report renders and the doctor answers, or the error is typed."""

import json
import logging
from pathlib import Path

import pytest

from surefoot.errors import RunDirectoryError
from surefoot.inspection.diagnosis import diagnose
from surefoot.inspection.report.page import report_page
from surefoot.inspection.run_record import read_run
from surefoot.settings.config import Config
from surefoot.settings.layers import to_yaml
from surefoot.telemetry import gauges, names

METRICS = [value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)]


def line(step: str, value: str) -> str:
    return f'{{"step": {step}, ' + ", ".join(f'"{name}": {value}' for name in [*METRICS, "env/x"]) + "}"


SOUND = [line(str(100 * number), str(float(number))) for number in range(1, 31)]


def written(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(to_yaml(Config()))
    (folder / "metrics.jsonl").write_bytes(content)
    return folder


def examine(folder: Path) -> int:
    """Report and diagnosis of a run, alone and beside another; returns the number of its records."""
    run = read_run(folder)
    other = read_run(written(folder.parent / "other", "\n".join(SOUND).encode()))
    assert "</html>" in report_page([run])
    assert "</html>" in report_page([run, other])
    json.dumps(diagnose(folder).to_json(), allow_nan=False)
    return len(run.records)


VALUES = ["1e308", "-1e308", "1e100", "-1e100", "1e-320", "0", "-0.0", "NaN", "-Infinity", "1e400", "true", '"x"', "[]"]


@pytest.mark.parametrize("value", VALUES)
def test_values_of_metrics(tmp_path, value):
    assert examine(written(tmp_path / "one", "\n".join([*SOUND, line("9000", value)]).encode())) == 31
    whole = [line(str(100 * number), value) for number in range(1, 31)]
    assert examine(written(tmp_path / "all", "\n".join(whole).encode())) == 30


BAD_LINES: dict[str, bytes] = {
    **{
        f"step {text[:9]}": line(text, "1").encode() for text in ("-5", "1.5", "true", '"7"', "1e308", "NaN", "9" * 400)
    },
    "deep": b"[" * 100_000,
    "long": b"x" * 10**7,
    "binary": bytes(range(1, 10)) + bytes(range(14, 28)) + bytes(range(32, 256)),
    "list": b"[1]",
    "number": b"5",
    "cut off": b'{"step": 99',
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_lines_that_are_not_records_are_counted(tmp_path, name, caplog):
    content = "\n".join(SOUND).encode() + b"\n" + BAD_LINES[name] + b"\n" + line("9000", "1").encode()
    with caplog.at_level(logging.WARNING, "surefoot"):
        assert len(read_run(written(tmp_path / "run", content)).records) == 31
    assert "skipped 1 of 32 lines that are not records with a step" in caplog.text
    assert examine(tmp_path / "run") == 31


def test_steps_that_go_backwards_begin_again(tmp_path):
    content = "\n".join([*SOUND, line("500", "7"), line("600", "8")]).encode()
    assert examine(written(tmp_path / "run", content)) == 6


def test_only_bad_lines_are_an_error(tmp_path):
    folder = written(tmp_path / "run", b"\n".join(BAD_LINES.values()))
    with pytest.raises(RunDirectoryError, match="has no records yet"):
        read_run(folder)


REWARDS = ["1e100", "-1e100", "1e-320", "5e-324", "0", "NaN", "-Infinity", "1e400", "true", '"x"', "[]", "null"]


@pytest.mark.parametrize("value", REWARDS)
def test_returns_of_evaluations(tmp_path, value):
    folder = written(tmp_path / "run", "\n".join(SOUND).encode())
    lines = [
        f'{{"step": {step}, "rewards": [{value}, {other}], "wins": [{value}]}}'
        for step, other in ((100, 0), (200, value))
    ]
    (folder / "evaluations.jsonl").write_text("\n".join(lines))
    assert examine(folder) == 30


@pytest.mark.parametrize("content", ["", '{"step": 100}', '{"rewards": [1]}', '{"step": 1, "rewards": []}', "[]\n5\nx"])
def test_evaluations_without_returns(tmp_path, content):
    folder = written(tmp_path / "run", "\n".join(SOUND).encode())
    (folder / "evaluations.jsonl").write_text(content)
    assert examine(folder) == 30
    assert "<h2>Returns</h2>" not in report_page([read_run(folder)])


def test_gauges_of_extreme_settings():
    """A clip range of 20 is allowed, and the alerts are checked during training."""
    assert gauges.clipped({names.CLIP_FRACTION: 0.0, names.CLIP_RANGE: 20.0}) is None
    throughput = gauges.Throughput()
    still = {names.STEPS_PER_SECOND: 0.0, names.ROLLOUT_SECONDS: 60.0}
    assert [throughput(still) for _ in range(30)][-1] is None
