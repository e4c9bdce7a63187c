"""Reading runs back."""

import json
from pathlib import Path

import pytest

from surefoot import PPO
from surefoot.errors import RunDirectoryError
from surefoot.inspection.run_record import read_run
from surefoot.training.run_directory import RunDirectory


def make_run(folder: Path, lines: list[str]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text("train: {seed: 3}\n")
    (folder / "metrics.jsonl").write_text("\n".join(lines))
    return folder


def test_series_skip_records_without_the_metric(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run", ['{"step": 1, "a": 2.0}', '{"step": 2}', '{"step": 3, "a": 4.0}']))
    assert run.series("a") == [(1, 2.0), (3, 4.0)]
    assert run.config["train"]["seed"] == 3
    assert run.name == "run"


def test_the_engine_is_the_one_that_the_log_names_last(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "run", ['{"step": 1}']))
    assert run.log.engine is None
    log = tmp_path / "run" / "log.txt"
    log.write_text("x INFO rollouts: step by step, vector env\n")
    assert run.log.engine is None
    log.write_text("x INFO rollouts: native on 2 threads\nx WARNING rollouts: step by step, local (why (not))\nx\n")
    assert run.log.engine == "local"


@pytest.mark.parametrize("engine", ["native", "local"])
def test_the_log_of_a_real_run_names_its_engine(tmp_path: Path, engine: str) -> None:
    agent = PPO("CartPole-v1", engine=engine, num_envs=2, num_steps=8, batch_size=16, hidden=4, eval_episodes=0)
    agent.learn(16, run_dir=tmp_path / "run")
    assert read_run(tmp_path / "run").log.engine == engine


def test_half_a_line_is_skipped(tmp_path: Path) -> None:
    assert len(read_run(make_run(tmp_path / "run", ['{"step": 1, "a": 2.0}', '{"step": 2, "a'])).records) == 1


def test_steps_repeated_after_a_resume_count_once_and_as_written_last(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "a": value}) for step, value in [(1, 1.0), (2, 2.0), (3, 3.0), (2, 20.0)]]
    assert read_run(make_run(tmp_path / "run", lines)).series("a") == [(1, 1.0), (2, 20.0)]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"no config\.yaml"):
        read_run(tmp_path)
    (tmp_path / "config.yaml").write_text("{}")
    with pytest.raises(RunDirectoryError, match=r"no metrics\.jsonl"):
        read_run(tmp_path)
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(RunDirectoryError, match="no record"):
        read_run(tmp_path)


def test_only_finite_numbers_are_kept(tmp_path: Path) -> None:
    lines = ['{"step": 1, "a": NaN, "b": "text", "c": null, "d": 4}', '{"step": Infinity}', '{"step": "x"}', "5", "[]"]
    huge = '{"step": 1' + "0" * 400 + "}"
    assert read_run(make_run(tmp_path / "run", [*lines, huge])).records == [{"step": 1, "d": 4}]


def test_a_broken_config_is_named_in_one_line(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", ['{"step": 1}'])
    (folder / "config.yaml").write_text("a: [1\nb: }")
    with pytest.raises(RunDirectoryError, match=r"config\.yaml cannot be read: [^\n]*$"):
        read_run(folder)


def test_a_run_without_records_says_whether_to_wait(tmp_path: Path) -> None:
    make_run(tmp_path / "run", [])
    with pytest.raises(RunDirectoryError, match="ended before its first iteration"):
        read_run(tmp_path / "run")
    with RunDirectory(tmp_path / "run"), pytest.raises(RunDirectoryError, match="wait for the first iteration"):
        read_run(tmp_path / "run")
