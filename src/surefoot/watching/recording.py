"""Shows episodes in a window, or records them in a file."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from surefoot.policies.policy import Policy
from surefoot.watching.overlay import drawn, shown_return
from surefoot.watching.playing import Moment, Program, play
from surefoot.watching.stage import Stage
from surefoot.watching.video_file import Preview, write_video

_log = logging.getLogger("surefoot")

Tell = Callable[[Moment], None]
"""Is told each moment, for a progress bar."""


@dataclass(frozen=True)
class Shown:
    """Episodes that were shown: their total rewards (for several agents the mean) and lengths."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Recording(Shown):
    """Episodes in a video file."""

    path: Path
    fps: float
    """Frames per second; the video runs in the env's own time."""
    num_frames: int


def show(policy: Policy, stage: Stage, program: Program, rows: int, tell: Tell | None = None) -> Shown:
    """Play the episodes in the window of the stage."""
    log = _Log(tell)
    for moment in play(policy, stage, program, rows):
        log.add(moment)
    return Shown(*log.results())


def record(
    policy: Policy,
    stage: Stage,
    program: Program,
    rows: int,
    path: Path,
    tell: Tell | None = None,
    preview: Preview | None = None,
) -> Recording:
    """Play the episodes and write them into a video file; `preview` gets a small copy."""
    log = _Log(tell)

    def frames() -> Iterator[Image.Image]:
        for moment in play(policy, stage, program, rows):
            log.add(moment)
            if moment.picture is not None:
                yield drawn(moment.picture, caption(moment, program.episodes))

    write_video(path, frames() if preview is None else preview.watching(frames()), stage.fps)
    return Recording(*log.results(), path, stage.fps, log.num_frames)


def caption(moment: Moment, episodes: int) -> list[str]:
    """The text of a frame."""
    which = [f"episode {moment.episode + 1}/{episodes}"] if episodes > 1 else []
    return [*which, f"return {shown_return(moment.total_reward)}", f"step {moment.step:,}"]


class _Log:
    """Collects the results of the episodes."""

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self._ends: list[Moment] = []
        self.num_frames = 0

    def add(self, moment: Moment) -> None:
        """Note a moment."""
        self.num_frames += moment.picture is not None
        if moment.is_last:
            self._ends.append(moment)
        if moment.is_cut:
            _log.info("episode %d was cut off after %d steps", moment.episode + 1, moment.step)
        if self._tell is not None:
            self._tell(moment)

    def results(self) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Total rewards and lengths."""
        return tuple(end.total_reward for end in self._ends), tuple(end.step for end in self._ends)
