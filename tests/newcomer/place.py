"""Where the walk takes place: a clone, an environment, and a folder of the user; runs commands there."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tests.newcomer.step import Step

FILES = Path(__file__).parent / "files"
LIMIT_S = 7200
"""Seconds after which a command counts as hung."""


@dataclass(frozen=True)
class Walked:
    """What became of a step; `problem` is empty if all is well."""

    step: Step
    command: str
    output: str
    seconds: float
    problem: str


class Place:
    """Commands are typed in `folder`, with the programs of `venv` first on PATH."""

    def __init__(self, clone: Path, venv: Path, folder: Path) -> None:
        self.clone, self.venv, self.folder = clone, venv, folder
        shutil.copytree(FILES, folder, dirs_exist_ok=True)
        for name in ("videos", "pages"):
            (folder / name).mkdir(exist_ok=True)
        left_out = ("PYTHONPATH", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        self._environment = kept | {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
        self._outputs: dict[str, str] = {}

    def walk(self, step: Step) -> Walked:
        """Run the command of a step and compare."""
        start = time.monotonic()
        command = self._command(step)
        if command:
            code, output = self._run(step, command)
            problem = self._problem(step, code, output)
        else:
            output, problem = "", f"no earlier step printed {step.command}"
        self._outputs[step.name] = output
        return Walked(step, command, output, time.monotonic() - start, problem)

    def _command(self, step: Step) -> str:
        """What is typed; for a command that an earlier step printed, empty if it did not."""
        if not step.typed_from:
            return step.command.replace("{clone}", str(self.clone))
        earlier = next((output for name, output in self._outputs.items() if step.typed_from in name), "")
        found = re.search(step.command, earlier)
        return found[0].strip() if found else ""

    def _run(self, step: Step, command: str) -> tuple[int, str]:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.clone if step.in_clone else self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        watchdog = threading.Timer(LIMIT_S, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        lines, waits = [], bool(step.interrupt_at)
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if waits and step.interrupt_at in line:
                waits = False
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
        code = process.wait()
        watchdog.cancel()
        return code, "".join(lines)

    def _problem(self, step: Step, code: int, output: str) -> str:
        if code != step.code:
            return f"exit code {code} instead of {step.code}"
        if "Traceback" in output:
            return "a traceback"
        absent = [text for text in step.prints if text not in output]
        if absent:
            return f"did not print {absent}"
        missing = [name for name in step.writes if not (self.folder / name).is_file()]
        return f"did not write {missing}" if missing else ""
