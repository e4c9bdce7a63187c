"""The docs cannot rot: quotes equal the source, code blocks run, the settings page is current."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WALKED = (
    "training/trainer.py",
    "rollout/stepwise.py",
    "learning/estimators/gae.py",
    "learning/terms/surrogate.py",
    "learning/learner.py",
)


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


@pytest.mark.parametrize("page", ["reliability.md", "security.md"])
def test_the_tests_that_a_page_names_exist(page: str) -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)(?:::(test_\w+))?`", (ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) >= 5
    for file, test in named:
        assert f"def {test}" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{test}"


def test_the_tours_quote_the_source() -> None:
    for name in ("tour.md", "native_tour.md"):
        assert (ROOT / "docs" / name).read_text(encoding="utf-8").count("<!-- quote:") >= 5


def test_the_tour_is_short() -> None:
    sources = [ROOT / "src" / "surefoot" / name for name in WALKED]
    tour = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    assert all(f"src/surefoot/{name}" in tour for name in WALKED)
    assert sum(len(source.read_text(encoding="utf-8").splitlines()) for source in sources) < 300


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


def test_import_contracts() -> None:
    """Upper layers may import lower ones, never the reverse; telemetry never imports torch."""
    command = [os.path.join(os.path.dirname(sys.executable), "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_speed_table_is_of_the_committed_results() -> None:
    written = runpy.run_path(str(ROOT / "docs" / "speed_table.py"))["written"]
    assert written() == (ROOT / "README.md").read_text(encoding="utf-8"), "run: python docs/speed_table.py"


def test_the_tables_of_the_zoo_are_of_its_index() -> None:
    pages = runpy.run_path(str(ROOT / "docs" / "zoo_page.py"))["pages"]
    for page, text in pages().items():
        assert text == page.read_text(encoding="utf-8"), "run: python docs/zoo_page.py"
