"""Output of a notebook's cell that is replaced in place."""

from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from rich.jupyter import JupyterMixin


class NotebookCell:
    """Draws in the cell that is being run, like `rich.live.Live`, which would need ipywidgets for that."""

    def __init__(self, get_renderable: Callable[[], RenderableType]) -> None:
        self._get = get_renderable
        self._handle: Any = None

    def start(self, refresh: bool = True) -> None:
        """Draw for the first time."""
        from IPython.display import display  # present wherever a notebook runs

        self._handle = display(_Shown(self._get()), display_id=True)

    def refresh(self) -> None:
        """Replace what was drawn."""
        self._handle.update(_Shown(self._get()))

    def stop(self) -> None:
        """Draw for the last time."""
        self.refresh()


class _Shown(JupyterMixin):
    """Anything that rich can print, in the form that notebooks ask for."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich__(self) -> RenderableType:
        return self._renderable
