"""The docs cannot rot: quotes equal the source, code blocks run, the settings page is current."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    """Code blocks that stand for themselves: all but the quotes."""
    text = re.sub(r"<!-- quote: .*? -->\n```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


BLOCKS = [(page.name, index, code) for page in PAGES for index, code in enumerate(python_blocks(page))]


@pytest.mark.parametrize(("page", "index", "code"), BLOCKS, ids=[f"{page}-{index}" for page, index, _ in BLOCKS])
def test_code_block_runs(page: str, index: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, f"{page} block {index}", "exec"), {"__name__": "__main__"})


def test_there_are_blocks_to_run() -> None:
    assert {page for page, _, _ in BLOCKS} >= {"README.md", "environments.md", "policies.md", "runs.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if "<!-- quote:" in page.read_text(encoding="utf-8")])
def test_quotes_equal_the_source(page: Path) -> None:
    quote = runpy.run_path(str(ROOT / "docs" / "quote.py"))
    text = page.read_text(encoding="utf-8")
    assert quote["refreshed"](text) == text, "run: python docs/quote.py"


@pytest.mark.parametrize("page", ["reliability.md", "security.md", "semantics.md"])
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)(?:::(test_\w+))?`", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) >= 5
    for file, test in named:
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_every_rule_that_the_source_cites_is_defined() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^## (S\d+): ", page, flags=re.MULTILINE))
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "cpp").rglob("*.?pp")]
    cited = {rule for source in sources for rule in re.findall(r"\bS\d+(?=[,)])", source.read_text(encoding="utf-8"))}
    assert len(cited) >= 10
    assert cited <= defined == {f"S{number}" for number in range(1, 16)}
    for rule in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        assert {"*Why.*", "*Tests.*"} <= set(rule.split()), rule.splitlines()[0]


def test_every_file_that_cites_a_rule_names_the_page() -> None:
    for source in (ROOT / "src").rglob("*.py"):
        text = source.read_text(encoding="utf-8")
        cited = re.findall(r"\bS\d+(?=[,)]).*", text)
        assert [citation for citation in cited if "docs/semantics.md" in citation] == cited[:1], source
    assert "docs/semantics.md" in (ROOT / "src" / "surefoot" / "__init__.py").read_text(encoding="utf-8")


def test_the_tours_quote_the_source() -> None:
    for name in ("tour.md", "native_tour.md"):
        assert (ROOT / "docs" / name).read_text(encoding="utf-8").count("<!-- quote:") >= 5


def test_the_tour_names_every_file_that_an_iteration_runs() -> None:
    """What the tour shows is all there is: its quotes and its list are the files of a traced iteration."""
    path = runpy.run_path(str(ROOT / "docs" / "reading_path.py"))
    traced = path["traced"]()
    assert path["written"](traced) == (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"), (
        "run: python docs/reading_path.py"
    )
    assert path["shown"]() <= set(traced), "an iteration runs what is quoted"


def test_the_tour_shows_every_file_that_it_tells_one_to_read() -> None:
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    advice = tour.partition("open these files in this order:")[2].partition("All paths")[0]
    shown = {Path(path).name for path in re.findall(r"<!-- quote: src/surefoot/(\S+) ", tour)}
    told = [Path(path).name for path in re.findall(r"`(\S+\.py)`", advice)]
    assert len(told) >= 10
    assert set(told) <= shown


def test_the_reading_path_counts_what_is_imported(tmp_path: Path) -> None:
    path = runpy.run_path(str(ROOT / "docs" / "reading_path.py"))
    trainer, gae = (ROOT / "src" / "surefoot" / name for name in ("training/trainer.py", "learning/estimators/gae.py"))
    found = path["imported"]({trainer})
    assert {trainer, ROOT / "src/surefoot/learning/learner.py", ROOT / "src/surefoot/rollout/samples.py"} <= found
    assert gae not in found, "an estimator is found by its name"
    assert gae in path["imported"]({trainer, gae}) > found


def test_functions_are_quoted_by_name(tmp_path: Path) -> None:
    quoted = runpy.run_path(str(ROOT / "docs" / "quote.py"))["quoted"]
    (tmp_path / "a.py").write_text("@cache\ndef f():\n    pass\n\n\nclass C:\n    def g(self):\n        return 1\n")
    assert quoted(str(tmp_path / "a.py"), "C.g,f") == "def g(self):\n    return 1\n\n@cache\ndef f():\n    pass\n"
    with pytest.raises(LookupError, match=r"no function of this name"):
        quoted(str(tmp_path / "a.py"), "C.h")


@pytest.mark.parametrize("name", ["settings", "cli"])
def test_written_page_is_current(name: str) -> None:
    page = runpy.run_path(str(ROOT / "docs" / f"{name}_page.py"))
    current = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert page["page"]() == current, f"run: python docs/{name}_page.py"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!http)([^)#]+)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"])
def test_code_blocks_fit(page: Path) -> None:
    """Neither the site nor a forge scrolls sideways; quoted source, which may be wider, fits a larger window."""
    text = page.read_text(encoding="utf-8")
    for quote, block in re.findall(
        r"(<!-- quote: .*? -->\n)?^ *```[^\n]*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE
    ):
        too_long = [line for line in block.splitlines() if len(line) > (120 if quote else 100)]
        assert too_long == []


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "gallery").iterdir()), ids=lambda file: file.name)
def test_pictures_of_the_gallery_have_one_size_and_a_caption(file: Path) -> None:
    with Image.open(file) as picture:
        assert picture.size == (240, 240)
    page = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")
    assert re.search(rf'<td align="center"><img src="gallery/{file.name}" [^>]*><br><b>.+</b><br>score .+</td>', page)


def test_import_contracts() -> None:
    """Upper layers may import lower ones, never the reverse; telemetry never imports torch."""
    command = [os.path.join(os.path.dirname(sys.executable), "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", ["learning_tables", "speed_table", "zoo_page"])
def test_the_tables_are_of_the_committed_results(script: str) -> None:
    pages = runpy.run_path(str(ROOT / "docs" / f"{script}.py"))["pages"]()
    assert ROOT / "docs" / "results.md" in pages
    for page, text in pages.items():
        assert text == page.read_text(encoding="utf-8"), f"run: python docs/{script}.py"


def test_readme_is_a_screen_and_a_half() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text) < 6500
    shown = [line for line in text.splitlines() if not line.startswith("<img")]
    assert max(map(len, shown)) <= 80, "README is read in terminals, too"
