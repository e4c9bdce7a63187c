"""Text of run directories cannot control the terminal; pipes in the place of files do not block; any path works."""

import os
import sys
from pathlib import Path

import pytest

from tests.cli.processes import Finished, Process, surefoot
from tests.cli.runs import TINY
from tests.inspection.report.written_runs import append_log, records, write_evaluations, write_run
from tests.output.hostile_text import HOSTILE


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """Escapes wherever a run directory has text."""
    found = [{**line, f"env/{HOSTILE}": 1.0, f"alert/{HOSTILE}": 1.0} for line in records(30)]
    folder = tmp_path / f"run{HOSTILE}"
    run = write_run(folder, found, {"train.start_from": f"x{HOSTILE}", "log.wandb_project": f"p{HOSTILE}"})
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(config.replace("id: CartPole-v1", 'id: "Cart\\e]0;owned\\aPole-v1"'))
    write_evaluations(folder, {2560: [1.0, 2.0], 5120: [3.0, 4.0]})
    append_log(run, f"ended by an error: it broke {HOSTILE}; do {HOSTILE}")
    (folder / "nonfinite_step_5.json").write_text('{"step": 5, "trouble": "\\u001b]0;owned\\u0007"}')
    return folder


@pytest.mark.parametrize("command", ["doctor", "compare", "report", "evaluate", "watch", "export", "resume", "verify"])
def test_no_command_shows_escapes_of_a_run(hostile_run: Path, tmp_path: Path, command: str) -> None:
    page = ["--output", tmp_path / "page.html"] if command in ("compare", "report") else []
    shown = surefoot(command, hostile_run, *page)
    assert shown.out + shown.err
    assert "Traceback" not in shown.err
    for control in ("\x1b", "\x07", "\x9b", "\x08", "\u202e"):
        assert control not in shown.out + shown.err


PIPES = {
    "lock": ["doctor", "report", "compare", "resume"],
    "config.yaml": ["doctor", "report", "compare", "resume", "evaluate"],
    "metrics.jsonl": ["doctor", "report", "compare"],
    "log.txt": ["doctor", "report", "resume"],
    "evaluations.jsonl": ["doctor", "report", "compare"],
    "nonfinite_step_5.json": ["doctor"],
}


@pytest.mark.parametrize(("name", "command"), [(name, command) for name in PIPES for command in PIPES[name]])
def test_a_named_pipe_does_not_block(tmp_path: Path, name: str, command: str) -> None:
    folder = tmp_path / "run"
    write_run(folder, records(30))
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    if name == "lock":
        (folder / "metrics.jsonl").write_text("")
    page = ["--output", tmp_path / "page.html"] if command in ("compare", "report") else []
    finished = surefoot(command, folder, *page)
    assert "Traceback" not in finished.err
    assert finished.code in (0, 1, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "CartPole-v1", "--config", "{odd}"],
        ["population", "train", "{odd}"],
        ["sweep", "{odd}"],
        ["report", "{run}", "--output", "{odd}"],
        ["compare", "{run}", "--normalize", "{odd}", "--output", "{page}"],
        ["train", "Market-v0", "--env.kwargs", "{{prices: {odd}}}", "--run-dir", "{page}"],
        ["train", "CartPole-v1", "--train.start_from", "{odd}", "--run-dir", "{page}"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-2:-1]),
)
def test_files_that_the_user_names_do_not_block(tmp_path: Path, arguments: list[str]) -> None:
    write_run(tmp_path / "run", records(30))
    odd = tmp_path / "odd"
    os.mkfifo(odd)
    for path in (odd, Path("/dev/zero")):
        names = {"odd": path, "run": tmp_path / "run", "page": tmp_path / "page"}
        surefoot(*(argument.format(**names) for argument in arguments)).refused()


FILES = Path(__file__).parents[1] / "newcomer" / "files"
SEVERAL = {
    "seeds": ("train", "CartPole-v1", "--seeds", "1,2", "--steps", "64"),
    "sweep": ("sweep", FILES / "my_sweep.yaml"),
    "population": ("population", FILES / "my_population.yaml"),
}


@pytest.mark.parametrize("command", SEVERAL)
def test_a_named_pipe_as_lock_of_several_runs_is_refused(tmp_path: Path, command: str) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    os.mkfifo(folder / "lock")
    said = " ".join(surefoot(*SEVERAL[command], "--run-dir", folder).refused().split())
    assert f"is not writable ({folder / 'lock'}: it is not a regular file); choose another with --run-dir" in said


def raw(folder: Path, *arguments: bytes) -> Finished:
    """`surefoot ARGUMENTS` with bytes that need not be UTF-8."""
    return Process(_raw, folder, arguments).wait()


def _raw(folder: Path, arguments: tuple[bytes, ...]) -> None:
    from surefoot.cli.main import main

    os.chdir(folder)
    sys.exit(main([os.fsdecode(argument) for argument in arguments]))


def test_paths_that_are_not_utf_8_work(tmp_path: Path) -> None:
    tiny = [os.fsencode(str(argument)) for argument in (*TINY, "--steps", 32, "--train.checkpoint_every", 32)]
    run = b"r\xe4n"
    raw(tmp_path, b"train", b"CartPole-v1", b"--run-dir", run, *tiny).succeeded()
    raw(tmp_path, b"resume", run, b"--steps", b"64").succeeded()
    raw(tmp_path, b"evaluate", run, b"--episodes", b"1").succeeded()
    assert raw(tmp_path, b"doctor", run).code in (0, 1)
    raw(tmp_path, b"report", run).succeeded()
    assert "no evaluation was recorded" in raw(tmp_path, b"compare", run, b"--output", b"p\xe4ge.html").refused()


@pytest.mark.parametrize(
    "arguments",
    [
        (b"tr\xe4in",),
        (b"train", b"Cart\xe4"),
        (b"train", b"CartPole-v1", b"--st\xe4ps", b"3"),
        (b"train", b"CartPole-v1", b"--env.kwargs", b"{a: \xe4}"),
        (b"train", b"CartPole-v1", b"--log.wandb_project", b"\xe4"),
        (b"train", b"CartPole-v1", b"--policy.memory", b"\xe4"),
        (b"train", b"CartPole-v1", b"--env.\xe4", b"3"),
        (b"train", b"CartPole-v1", b"--hooks.\xe4.kind", b"\xe4"),
        (b"train", b"CartPole-v1", b"--config", b"\xe4"),
        (b"train", b"CartPole-v1", b"--schedules.lr", b"\xe4"),
        (b"population", b"train", b"\xe4"),
        (b"sweep", b"\xe4"),
        (b"resume", b"\xe4"),
        (b"envs", b"\xe4"),
        (b"bench", b"\xe4"),
        (b"native", b"new", b"\xe4"),
        (b"native", b"build", b"\xe4"),
        (b"verify", b"\xe4"),
        (b"export", b"\xe4", b"--onnx", b"\xe4.onnx"),
        (b"doctor", b"\xe4"),
        (b"evaluate", b"zoo:\xe4"),
        (b"zoo", b"\xe4"),
        (b"presets", b"\xe4"),
    ],
)
def test_options_that_are_not_utf_8_are_refused(tmp_path: Path, arguments: tuple[bytes, ...]) -> None:
    raw(tmp_path, *arguments).refused()
