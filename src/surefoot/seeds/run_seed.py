"""The run of one seed, as a job."""

import logging
import shlex
import sys
import time
from pathlib import Path
from typing import Any

from surefoot.assembly import run_of_job
from surefoot.data.records import IterationReport
from surefoot.jobs.job import Say
from surefoot.run import Run
from surefoot.settings.layers import build_config
from surefoot.training.hooks import Hook

_SAY_EVERY_S = 0.5
_log = logging.getLogger("surefoot")


def run_seed(arguments: dict[str, Any], say: Say) -> dict[str, Any]:
    """Train a run to its end, from its newest checkpoint if there is one; returns the step that it reached.

    Arguments: `directory`, `config`, and `command`, what the user typed.
    """
    config, tell = build_config(arguments["config"]), Tell(say)
    silent = build_config(arguments["config"], {"log.console": "off"})
    with run_of_job(Path(arguments["directory"]), silent, [tell]) as run:
        assert run.directory is not None
        run.directory.write_config(config)  # alone, the run has a display of its own again
        tell.source = run
        if arguments["command"]:
            _log.info("command: %s", shlex.join(["surefoot", *arguments["command"]]))
        if not run.is_complete:
            _, code = run.train()
            if code:  # without a result, the run is continued by the next command
                sys.exit(code)
        return {"step": run.progress.step, "wanted": config.train.steps, "reason": run.stop_reason}


class Tell(Hook):
    """Reports what the display of all seeds shows."""

    source: Run

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say, self._said = say, 0.0
        self._shown: dict[str, Any] = {}

    def begin(self) -> None:
        self._say({"step": self.run.progress.step})

    def after_iteration(self, report: IterationReport) -> None:
        rewards = [episode.total_reward for episode in report.stats.recent]
        seconds = report.rollout_s + report.learn_s
        self._shown = {
            "reward": sum(rewards) / len(rewards) if rewards else None,
            "rate": report.stats.num_steps / seconds if seconds > 0 else None,
        }
        if time.monotonic() - self._said >= _SAY_EVERY_S:
            self._tell()

    def end(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self._said, evaluation = time.monotonic(), self.source.evaluation
        last = None if evaluation is None or evaluation.last is None else evaluation.last.mean_reward
        alerts = [alert.label for alert in self.source.alerts.raised]
        self._say({"step": self.run.progress.step, **self._shown, "score": last, "alerts": alerts})
