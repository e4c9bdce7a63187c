"""Hook of mkdocs: pages from outside docs/, and links that work on the site and on a forge.

The pages of docs/ are plain Markdown with links to files of the repository. On the site, a link to a page stays one, an
image or a video is copied, and any other file is a link to the repository (`repo_url` in mkdocs.yml).
"""

import logging
import posixpath
import re
from html import unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
OUTSIDE = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
"""Pages of the site, and the files that they show."""
VIDEOS = (".mp4", ".webm")
MEDIA = (".png", ".gif", ".jpg", ".jpeg", ".svg", ".webp", *VIDEOS)
_CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<before>]\(|\b(?:src|href|poster)=\")(?P<target>[^)\"\s]+)")
_VIDEO = re.compile(rf"!\[([^]]*)]\(([^)\s]+(?:{'|'.join(VIDEOS)}))\)")
_RULE = re.compile(r"\bS\d+(?=[,)])")
_CELL = re.compile(r"<td(?P<style>[^>]*)>(?P<content>(?:(?!</td>).)*)</td>", re.DOTALL)
_MOST_UNBROKEN = 32
"""Characters of a cell of numbers that stays on one line."""
_log = logging.getLogger("mkdocs.hooks.site_pages")  # below mkdocs: --strict counts its warnings


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside docs/."""
    for uri, source in OUTSIDE.items():
        files.append(File.generated(config, uri, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links, and show images of videos as players; code stays as it is."""
    uri = page.file.src_uri
    source = ROOT / OUTSIDE[uri] if uri in OUTSIDE else DOCS / uri

    def link(match: re.Match[str]) -> str:
        target = match["target"]
        if target.startswith(("#", "mailto:")) or "://" in target:
            return match[0]
        path, mark, anchor = target.partition("#")
        file = (source.parent / path).resolve()
        if not file.exists():
            _log.warning("%s links to %s, which does not exist", source.relative_to(ROOT), target)
        return match["before"] + _address(file, posixpath.dirname(uri), config, files) + mark + anchor

    pieces = _CODE.split(markdown)
    pieces[::2] = [_VIDEO.sub(_player, _LINK.sub(link, piece)) for piece in pieces[::2]]
    return "".join(pieces)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark table cells that are mostly numbers, which must not break; link the rules that docstrings cite."""
    if page.file.src_uri.startswith("api/"):
        anchors = _anchors()
        html = _RULE.sub(lambda rule: f'<a href="../semantics.html#{anchors[rule[0]]}">{rule[0]}</a>', html)
    return _CELL.sub(_cell, html)


def _anchors() -> dict[str, str]:
    """The anchor of every rule in semantics.md."""
    text = (DOCS / "semantics.md").read_text(encoding="utf-8")
    anchor = slugify(case="lower")
    return {title.partition(":")[0]: anchor(title, "-") for title in re.findall(r"^## (S\d+: .*)", text, re.MULTILINE)}


def _cell(match: re.Match[str]) -> str:
    text = unescape(re.sub(r"<[^>]+>", "", match["content"]))
    letters = sum(character.isalpha() for character in text)
    is_number = re.search(r"\d", text) and 3 * letters < len(text) <= _MOST_UNBROKEN
    return f'<td class="number"{match["style"]}>{match["content"]}</td>' if is_number else match[0]


def _address(file: Path, folder: str, config: MkDocsConfig, files: Files) -> str:
    """The address of a file of the repository, for a page in `folder` of the site."""
    path = file.relative_to(ROOT).as_posix()
    pages = {source: uri for uri, source in OUTSIDE.items()}
    uri = pages.get(path, path.removeprefix("docs/"))
    found = files.get_file_from_path(uri)
    is_served = found is not None and not found.inclusion.is_excluded()
    if file.suffix in MEDIA and not is_served:
        files.append(File(uri, str(ROOT), config.site_dir, use_directory_urls=False))
        is_served = True
    if is_served:
        return posixpath.relpath(uri, folder or ".")
    return f"{config.repo_url}/{'tree' if file.is_dir() else 'blob'}/HEAD/{path}"


def _player(match: re.Match[str]) -> str:
    """A forge shows a link in place of the video; a browser plays it."""
    text, address = match.groups()
    return f'<video controls loop muted playsinline preload="metadata" src="{address}" aria-label="{text}"></video>'
