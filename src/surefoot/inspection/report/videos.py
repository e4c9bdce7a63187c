"""Videos of the policy in a report: embedded as far as they are small, otherwise linked."""

import os
import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from surefoot.inspection.run_record import RunRecord

VIDEOS_NOTE = (
    "Episodes of the policy with deterministic actions (<code>train.video_every</code>), from its first video to its"
    " last; <code>surefoot watch RUN</code> shows others."
)
MOST_BYTES, MOST_BYTES_ON_PAGE = 3_000_000, 12_000_000
"""Size of a video that is embedded, and of all of them together."""
MOST_SHOWN = 4
"""Videos of one run on the page, spread over the run; the others are linked."""
_NAME = re.compile(r"step_(\d+)\.(mp4|gif)")


def videos_of(runs: Sequence[RunRecord], folder: Path) -> str:
    """The videos of all runs as HTML; links are relative to `folder`."""
    left, sections = MOST_BYTES_ON_PAGE, []
    for run in runs:
        found = recorded(run.path)
        shown, links = [], []
        for number, (step, file) in enumerate(found):
            size = file.stat().st_size
            if number in _spread(len(found)) and size <= min(MOST_BYTES, left):
                shown.append(_figure(step, file))
                left -= size
            else:
                links.append(_link(step, file, size, folder))
        heading = f"<h3>{escape(run.name)}</h3>" if found and len(runs) > 1 else ""
        grid = f'<div class="grid">{"".join(shown)}</div>' if shown else ""
        listed = f"<p class='note'>More videos: {', '.join(links)}</p>" if links else ""
        sections.append(heading + grid + listed)
    return "".join(sections)


def recorded(run: Path) -> list[tuple[int, Path]]:
    """The videos of a run directory by step; symbolic links are somebody else's files."""
    try:
        files = [(_NAME.fullmatch(file.name), file) for file in (run / "videos").iterdir()]
        return sorted((int(found[1]), file) for found, file in files if found and _is_plain(file))
    except OSError:
        return []


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _spread(count: int) -> set[int]:
    """Indices of the first, the last, and others evenly between them."""
    if count <= MOST_SHOWN:
        return set(range(count))
    return {round(place * (count - 1) / (MOST_SHOWN - 1)) for place in range(MOST_SHOWN)}


def _figure(step: int, file: Path) -> str:
    content, caption = b64encode(file.read_bytes()).decode(), f"step {step:,}"
    if file.suffix == ".gif":
        shown = f'<img src="data:image/gif;base64,{content}" alt="video of {caption}">'
    else:
        shown = f'<video controls loop muted playsinline src="data:video/mp4;base64,{content}"></video>'
    return f"<figure><figcaption>{caption}</figcaption>{shown}</figure>"


def _link(step: int, file: Path, size: int, folder: Path) -> str:
    target = quote(os.path.relpath(file, folder).replace(os.sep, "/"))
    return f'<a href="{escape(target)}">step {step:,}</a> ({size / 1e6:.1f} MB)'
