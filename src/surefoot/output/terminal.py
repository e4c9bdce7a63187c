"""Rich's console at the border to the terminal."""

from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from surefoot.output.streams import LastingStream, Styled, harmless


class Terminal(Console):
    """A console whose styles and movements come from rich alone, not from the text that it shows."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Harmless text, and the controls of rich."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=harmless(segment.text))

    @property
    def file(self) -> IO[str]:
        """Where rich writes."""
        file = super().file
        return Styled(file) if isinstance(file, LastingStream) else file  # type: ignore[return-value]

    @file.setter
    def file(self, file: IO[str]) -> None:
        self._file = file
