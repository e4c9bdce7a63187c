"""Videos during training (`train.video_every`): a failure costs one warning, never the run."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from surefoot.data.records import IterationReport
from surefoot.errors import ConfigError, SurefootError
from surefoot.output.failures import brief, let_interrupts_through
from surefoot.settings.config import TrainConfig
from surefoot.telemetry.sink_group import SinkGroup
from surefoot.telemetry.sinks import Video
from surefoot.training.hooks import Every, Hook
from surefoot.training.run_directory import RunDirectory
from surefoot.watching.recording import Recording, shown_return
from surefoot.watching.target import missing_package
from surefoot.watching.video_file import Preview

_log = logging.getLogger("surefoot")
_NAME = re.compile(r"step_(\d+)\.(?:mp4|gif)")


@dataclass(frozen=True)
class Film:
    """A recording with its preview."""

    recording: Recording
    preview: Preview


def check_videos(train: TrainConfig) -> None:
    """Refuse a format whose package is missing, before the run starts."""
    if train.video_every and (problem := missing_package(train.video_format)):
        raise ConfigError(f"train.video_every: {problem}, or set train.video_format to gif")


class RecordVideos(Hook):
    """Records the policy at an interval of steps and at the end, into `videos/` of the run directory."""

    def __init__(
        self,
        record: Callable[[Path], Film],
        directory: RunDirectory,
        sinks: SinkGroup,
        train: TrainConfig,
        start: int,
    ) -> None:
        super().__init__()
        self._record, self._folder, self._sinks, self._train = record, directory.videos, sinks, train
        self._every, self._has_failed = Every(train.video_every, start), False

    def begin(self) -> None:
        """In a resumed run, record the video that is missing because the process was killed before."""
        step = self.run.progress.step
        interval = step // self._train.video_every
        if interval > 0 and not any(made // self._train.video_every >= interval for made in self._made()):
            self._film(step)

    def after_iteration(self, report: IterationReport) -> None:
        """Record if it is due."""
        step = report.progress.step
        if self._every.is_due(step) or self._is_last(report):
            self._film(step)

    def _film(self, step: int) -> None:
        path = self._folder / f"step_{step:09d}.{self._train.video_format}"
        try:
            film = self._record(path)
            video = Video(path, film.preview.gif(film.recording.fps), film.preview.size)
        except BaseException as error:  # an env may even call sys.exit
            let_interrupts_through(error)
            level = logging.INFO if self._has_failed else logging.WARNING
            self._has_failed = True
            cause = str(error) if isinstance(error, SurefootError) else brief(error)
            _log.log(level, "no video of step %d, training continues: %s", step, cause)
            return
        returns = ", ".join(map(shown_return, film.recording.returns))
        _log.info("video of step %d: return %s, %s", step, returns, path)
        self._sinks.write_video(step, video)

    def _made(self) -> list[int]:
        """Steps of the videos in the folder."""
        try:
            return [int(found[1]) for file in self._folder.iterdir() if (found := _NAME.fullmatch(file.name))]
        except OSError:  # mostly because there is none yet
            return []
