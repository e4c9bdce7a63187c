"""The documentation site: built once, with warnings as errors, then read as a browser would."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.config import load_config
from mkdocs.structure.files import get_files
from mkdocs.structure.pages import Page

import surefoot

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REPOSITORY = re.search(r"^repo_url: (\S+)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
LOADED = ("script", "link", "img", "video", "source", "iframe")
"""Elements that a browser loads by itself."""


class Addresses(HTMLParser):
    """Collects the ids of a page, and the address of every element that has one."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found += [(tag, address) for name in ("href", "src", "poster") if (address := given.get(name))]
        self.ids |= {given.get("id") or ""}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Addresses]:
    return {page: Addresses(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}


def test_the_home_page_links_every_page(site: Path, pages: dict[Path, Addresses]) -> None:
    """Together with --strict, which refuses pages outside the navigation."""
    linked = {address.partition("#")[0] for tag, address in pages[site / "index.html"].found if tag == "a"}
    sources = [source.relative_to(DOCS).with_suffix("") for source in DOCS.rglob("*.md")]
    expected = {str(one.with_name("index") if one.name == "README" else one) + ".html" for one in sources}
    tabs = {str(page.relative_to(site)) for page in pages} - {"404.html"}
    assert expected | {"index.html", "contributing.html", "changelog.html"} == tabs
    assert {"from_sb3.html", "runs.html", "extend/index.html", "settings.html", "tour.html"} <= linked


def test_every_link_leads_somewhere(site: Path, pages: dict[Path, Addresses]) -> None:
    assert REPOSITORY is not None
    for page, addresses in pages.items():
        for tag, address in addresses.found:
            if address.startswith(f"{REPOSITORY[1]}/"):
                kind, _, path = address.removeprefix(f"{REPOSITORY[1]}/").partition("/HEAD/")
                found = ROOT / path
                assert found.is_dir() if kind == "tree" else found.is_file(), f"{page.name}: {address}"
            elif not urlsplit(address).scheme and page.name != "404.html":
                path, _, anchor = address.partition("#")
                target = (page.parent / unquote(path)).resolve() if path else page
                assert target.exists(), f"{page.name}: {tag} {address}"
                assert not anchor or target not in pages or unquote(anchor) in pages[target].ids, (
                    f"{page.name}: {address}"
                )


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Addresses]) -> None:
    for page, addresses in pages.items():
        loaded = [address for tag, address in addresses.found if tag in LOADED and urlsplit(address).netloc]
        assert not [one for one in loaded if REPOSITORY is None or not one.startswith(REPOSITORY[1])], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_the_reference_has_every_exported_name(site: Path, pages: dict[Path, Addresses]) -> None:
    ids = {one for page, addresses in pages.items() if page.parent == site / "api" for one in addresses.ids}
    assert {f"surefoot.{name}" for name in surefoot.__all__ if name != "__version__"} <= ids
    assert {"surefoot.PPO.learn", "surefoot.settings.config.PPOConfig.gamma", "surefoot.errors.ConfigError"} <= ids
    config = (site / "api" / "config.html").read_text(encoding="utf-8")
    assert "Discount factor." in config
    assert "description=" not in config


def test_rules_in_the_reference_are_links(site: Path, pages: dict[Path, Addresses]) -> None:
    policies = (site / "api" / "policies.html").read_text(encoding="utf-8")
    assert '(<a href="../semantics.html#s11-normalized-returns">S11</a>, docs/semantics.md)' in policies
    assert "s11-normalized-returns" in pages[site / "semantics.html"].ids
    for page in (site / "api").glob("*.html"):
        assert not re.search(r"\(S\d+[,)]", page.read_text(encoding="utf-8")), page


def test_search_knows_settings_and_classes(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    for text in ("gae_lambda", "explained variance", "api/policies.html#surefoot.Critic", "torchrun"):
        assert text in index


def test_images_from_outside_docs_are_copied(site: Path) -> None:
    for path in ("benchmarks/results/learning/HalfCheetah-v5.png", "benchmarks/results/risk/frontier.png"):
        assert (site / path).read_bytes() == (ROOT / path).read_bytes()


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))])
def test_lists_follow_a_blank_line(page: Path) -> None:
    """A forge reads a list without it, mkdocs does not."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^(?![*\-] |\d+\. |\s).+\n[*\-] .*", text, re.MULTILINE)


def test_numbers_in_tables_stay_on_one_line(site: Path) -> None:
    page = (site / "zoo.html").read_text(encoding="utf-8")
    for text in ("154,376 to 159,119", "147,978 ± 6,974 (3)", "1,003,520"):
        assert re.search(rf'<td class="number"[^>]*>{re.escape(text)}</td>', page)
    assert "td.number { min-width: 0; white-space: nowrap; }" in (site / "site.css").read_text(encoding="utf-8")
    runs = (site / "runs.html").read_text(encoding="utf-8")
    assert not re.search(r'<td class="number"[^>]*>[^<]*(?:[a-z]{4,} ){3}', runs), "prose may break"


@pytest.fixture(scope="module")
def rewritten() -> Callable[[str, str], str]:
    """The text of a page on the site, by its name and its Markdown."""
    hook = runpy.run_path(str(DOCS / "site_pages.py"))
    config = load_config(str(ROOT / "mkdocs.yml"))
    files = config.plugins.on_files(get_files(config), config=config)

    def rewrite(name: str, markdown: str) -> str:
        file = files.get_file_from_path(name)
        assert file is not None
        return str(hook["on_page_markdown"](markdown, Page(None, file, config), config, files))

    return rewrite


def test_links_work_on_the_site_and_on_a_forge(rewritten: Callable[[str, str], str]) -> None:
    assert REPOSITORY is not None
    assert (
        rewritten("index.md", "[runs](docs/runs.md#risk), [log](CHANGELOG.md)")
        == "[runs](runs.md#risk), [log](changelog.md)"
    )
    assert rewritten("extend/hook.md", "[all](../../README.md#python)") == "[all](../index.md#python)"
    assert (
        rewritten("risk.md", "[results](../benchmarks/results)")
        == f"[results]({REPOSITORY[1]}/tree/HEAD/benchmarks/results)"
    )
    assert rewritten("risk.md", "[`api`](../src/surefoot/api.py)").endswith("/blob/HEAD/src/surefoot/api.py)")
    same = "`[a](../LICENSE)` [b](https://example.org) [c](#limits)\n```\n[d](../LICENSE)\n```"
    assert rewritten("risk.md", same) == same


def test_videos_are_played(rewritten: Callable[[str, str], str]) -> None:
    played = rewritten("risk.md", "![An agent](gallery/agent.mp4)")
    assert played.startswith("<video controls ")
    assert 'src="gallery/agent.mp4" aria-label="An agent"></video>' in played
    tag = '<video src="docs/gallery/agent.mp4" poster="benchmarks/results/risk/frontier.png" controls></video>'
    assert rewritten("index.md", tag) == tag.replace("docs/", "")


def test_a_missing_file_is_a_warning(rewritten: Callable[[str, str], str], caplog: pytest.LogCaptureFixture) -> None:
    rewritten("risk.md", '<img src="gallery/missing.gif">')
    assert caplog.messages == ["docs/risk.md links to gallery/missing.gif, which does not exist"]
