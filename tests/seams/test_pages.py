"""The pages of docs/extend: every example is shown, and its YAML and its flags mean the same (more: tests/docs)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from surefoot.cli.arguments import split_settings
from surefoot.settings.layers import build_config
from tests.cli.runs import newest
from tests.seams.pages import BY_MODULE, EXAMPLES, FOLDER, Shown
from tests.seams.runs import TINY, bring

PAGES = sorted(FOLDER.glob("*.md"))
INDEX = FOLDER / "README.md"


def test_anchors_lead_somewhere() -> None:
    for page in PAGES:
        for target, anchor in re.findall(r"\]\((\w+\.md)#([^)]+)\)", page.read_text(encoding="utf-8")):
            headings = re.findall(r"^#+ (.*)$", (FOLDER / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, (page.name, anchor)


def test_the_index_links_every_page_and_every_example_is_shown() -> None:
    index = INDEX.read_text(encoding="utf-8")
    assert all(f"({page.name})" in index for page in PAGES if page != INDEX)
    twins = {path.stem for path in EXAMPLES.glob("*.cpp")}  # of environments in C++
    assert set(BY_MODULE) == {path.stem for path in EXAMPLES.glob("*.py")} - twins


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
