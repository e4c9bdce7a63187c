"""What a wheel and a source distribution say and hold, as far as it can be known without compiling the core."""

import re
import tarfile
import tomllib
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest
import yaml
from scikit_build_core.build import build_sdist, prepare_metadata_for_build_wheel

from surefoot.version import VERSION

ROOT = Path(__file__).parents[2]
REPOSITORY = yaml.safe_load(re.sub(r"!!python\S+", "", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))["repo_url"]


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    folder = tmp_path_factory.mktemp("metadata")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        info = prepare_metadata_for_build_wheel(str(folder))
    return message_from_string((folder / info / "METADATA").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def source_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """The files of the source distribution and their sizes."""
    folder = tmp_path_factory.mktemp("source")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        name = build_sdist(str(folder))
    with tarfile.open(folder / name) as archive:
        return {one.name.partition("/")[2]: one.size for one in archive.getmembers()}


def test_the_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "surefoot"
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert "mujoco==4.0.0" in metadata.get_all("Requires-Dist", [])
    assert {"docs", "onnx", "release"} <= set(metadata.get_all("Provides-Extra", []))


def test_the_repository_has_one_address(metadata: Message) -> None:
    urls = [entry.partition(", ")[2] for entry in metadata.get_all("Project-URL", [])]
    assert urls
    assert all(url.startswith(REPOSITORY) for url in urls)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == REPOSITORY
    assert citation["version"] == VERSION


def test_the_source_distribution_holds_what_a_build_needs(source_files: dict[str, int]) -> None:
    needed = [
        path for name in ("src", "cpp/src", "cpp/include", "cpp/parts", "cpp/envs") for path in (ROOT / name).rglob("*")
    ]
    paths = {
        path.relative_to(ROOT).as_posix() for path in needed if path.is_file() and path.suffix not in (".pyc", ".so")
    }
    others = {"CMakeLists.txt", "pyproject.toml", "constraints.txt", "LICENSE", "README.md", "cpp/new-env/my_env.cpp"}
    assert paths | others <= set(source_files)


def test_the_source_distribution_holds_no_results(source_files: dict[str, int]) -> None:
    assert {name.partition("/")[0] for name in source_files} & {"benchmarks", "tests", "build", "dist", "runs"} == set()
    assert sum(source_files.values()) < 10e6


def test_every_build_requirement_is_pinned() -> None:
    """`make wheel` builds with what constraints.txt names."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    for requirement in (*project["build-system"]["requires"], *extras["docs"], *extras["release"]):
        name = re.split(r"[\[>=]", requirement)[0]
        assert f"\n{name}==" in pins, name
