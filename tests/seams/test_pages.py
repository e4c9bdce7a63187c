"""The pages of docs/extend: quotes equal the files, links lead somewhere, code runs, both commands mean the same."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from surefoot.cli.arguments import split_settings
from surefoot.core.layers import build_config
from tests.cli.runs import newest
from tests.seams.pages import BY_MODULE, EXAMPLES, FOLDER, Shown
from tests.seams.runs import TINY, bring

PAGES = sorted(FOLDER.glob("*.md"))
INDEX = FOLDER / "README.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_quotes_equal_the_examples(page: Path) -> None:
    refreshed = runpy.run_path(str(FOLDER.parent / "quote.py"))["refreshed"]
    text = page.read_text(encoding="utf-8")
    assert refreshed(text) == text, "run: python docs/quote.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!http)([^)#]+)(?:#([^)]+))?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = re.sub(r"<!-- quote: .*? -->\n```python\n.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})


def test_the_index_links_every_page_and_every_example_is_shown() -> None:
    index = INDEX.read_text(encoding="utf-8")
    assert all(f"({page.name})" in index for page in PAGES if page != INDEX)
    assert set(BY_MODULE) == {path.stem for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("example", BY_MODULE.values(), ids=lambda example: example.module)
def test_yaml_and_flags_mean_the_same(example: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    rest, flags = split_settings(list(example.with_flags))
    target = {"env": {"id": rest[1]}}
    assert build_config(target, yaml.safe_load(example.yaml)) == build_config(target, flags)


def test_the_installed_command_finds_a_file_in_the_current_folder(tmp_path: Path) -> None:
    """Every other test forks a process that has imported Surefoot already; this one starts from nothing."""
    bring(tmp_path, ["corridor", "curriculum"])
    command = [str(Path(sys.executable).with_name("surefoot")), *BY_MODULE["curriculum"].with_flags]
    tiny = [str(argument) for argument in (*TINY, "--run-dir", "run", "--rollout.engine", "processes")]
    done = subprocess.run([*command, *tiny], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert newest(tmp_path / "run")["hooks"]["curriculum"]["level"] > 0
