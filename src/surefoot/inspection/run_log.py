"""What the log of a run says about its processes."""

import re

_VERSIONS = re.compile(r"surefoot \S+, torch [^\s:]+")
_ROLLOUTS = re.compile(r" rollouts: (?:step by step, )?(\w+)(?: on \d+ threads| \(.*\))?$", re.MULTILINE)
_ERROR = re.compile(r" INFO ended by an error: (.*)")
_REASON = re.compile(r" INFO stopped at step \d+: (.*)")
_COMMAND = re.compile(r" INFO command: (surefoot .*)")


class RunLog:
    """The text of a log; processes of a resumed run append to it, and what the last one said counts."""

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def versions(self) -> str | None:
        """The versions of Surefoot and PyTorch."""
        return _last(_VERSIONS, self._text)

    @property
    def engine(self) -> str | None:
        """The engine of the rollouts: the config may say `auto`."""
        return _last(_ROLLOUTS, self._text)

    @property
    def error(self) -> str | None:
        """The error that ended the last process."""
        return _last(_ERROR, self._of_last_process())

    @property
    def stop_reason(self) -> str | None:
        """Why a hook stopped the last process."""
        return _last(_REASON, self._of_last_process())

    @property
    def commands(self) -> list[str]:
        """What the user typed to start and to resume the run."""
        return _COMMAND.findall(self._text)

    def _of_last_process(self) -> str:
        return self._text[max((found.start() for found in _VERSIONS.finditer(self._text)), default=0) :]


def _last(pattern: re.Pattern[str], text: str) -> str | None:
    found: list[str] = pattern.findall(text)
    return found[-1] if found else None
