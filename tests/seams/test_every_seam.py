"""Every example of docs/extend, dropped into a folder outside the package: from YAML, from flags, saved and resumed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import surefoot
from tests.cli.runs import QUIET, newest, records
from tests.seams.effects import SEAMS, Seam
from tests.seams.pages import BY_MODULE, EXAMPLES
from tests.seams.runs import ITERATION, bring, rest_of, resume_from, train_from_flags, train_from_yaml
from tests.training.states import assert_same

ENGINES = ("local", "processes", "native")
MIDDLE = 3 * ITERATION


@pytest.fixture(scope="module")
def earlier(tmp_path_factory) -> Path:
    """A checkpoint of a policy with memory."""
    run = tmp_path_factory.mktemp("earlier") / "run"
    tiny = ("--rollout.num_envs", 2, "--rollout.num_steps", 8, "--ppo.batch_size", 16, "--policy.hidden", 4)
    memory = ("--policy.memory.kind", "gru", "--policy.memory.hidden_size", 3, "--train.eval_episodes", 0)
    surefoot("train", "CartPole-v1", "--run-dir", run, *tiny, *memory, "--steps", 16, *QUIET).succeeded()
    return next((run / "checkpoints").iterdir())


def test_every_example_is_a_seam() -> None:
    assert {seam.module for seam in SEAMS} == set(BY_MODULE)


def _case(seam: Seam) -> Any:
    """What needs a library is built once."""
    is_built = any((EXAMPLES / f"{other}.cpp").exists() for other in seam.others)
    return pytest.param(seam, marks=[pytest.mark.xdist_group(seam.module)] * is_built, id=str(seam))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seam", [_case(seam) for seam in SEAMS])
def test_it_works_by_name_and_resumes_bit_for_bit(
    seam: Seam, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, (seam.module, *seam.others))
    shutil.copy(earlier, tmp_path / "earlier.safetensors")
    arguments = (*seam.arguments, "--rollout.engine", engine)
    whole, flags, resumed = Path("whole"), Path("flags"), Path("resumed")

    train_from_yaml(seam.module, whole, *arguments)
    state = newest(whole)
    seam.check(whole, state)
    log = (whole / "log.txt").read_text()
    assert (seam.native_line if engine == "native" else f"rollouts: step by step, {engine}\n") in log

    train_from_flags(seam.module, flags, *arguments)
    assert_same(newest(flags), state)
    assert records(flags) == records(whole)

    resume_from(flags, MIDDLE, resumed)
    assert "not bit for bit" not in (resumed / "log.txt").read_text()
    assert_same(newest(resumed), state)
    assert f"from step {MIDDLE} to" in (resumed / "log.txt").read_text()
    assert [record["step"] for record in records(resumed)] == [record["step"] for record in records(whole)]
    assert rest_of(records(resumed), MIDDLE) == rest_of(records(whole), MIDDLE)
