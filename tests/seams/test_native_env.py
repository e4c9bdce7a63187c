"""A user's environment in C++: its metrics come out, numbers for every row go in, on every engine."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from surefoot.training.checkpoint import read_checkpoint
from tests.cli.processes import surefoot
from tests.cli.runs import column, newest, records
from tests.compiled import compiled
from tests.seams.runs import ITERATION, TINY, bring, rest_of, resume_from
from tests.training.states import assert_same

TEMPLATE = Path(__file__).parents[2] / "cpp/new-env"
MIDDLE = 3 * ITERATION
CURRICULUM = """
env: {id: ./my_env.so, max_episode_steps: 12}
hooks:
  curriculum: {kind: "curriculum:Curriculum", parameter: wind, metric: distance, threshold: 0, step: 0.1}
train: {best_metric: -distance, eval_episodes: 2, eval_every: 64}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `surefoot native new` writes, built."""
    folder = tmp_path_factory.mktemp("native")
    for name in ("my_env.cpp", "my_env.py"):
        shutil.copy(TEMPLATE / name, folder)
    return compiled(folder / "my_env.cpp")


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("native", "rollouts: native on "),
        ("local", "rollouts: step by step, local"),
        ("processes", "rollouts: step by step, processes"),
    ],
)
@pytest.mark.xdist_group("native env")
def test_a_curriculum_sets_every_row_and_a_metric_chooses_the_best_policy(
    engine: str, line: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bring(tmp_path, ["curriculum"])
    for path in (library, library.with_suffix(".py")):
        shutil.copy(path, tmp_path)
    Path("run.yaml").write_text(CURRICULUM)
    tiny = [argument for argument in TINY if argument not in ("--train.eval_episodes", 0)]
    run, resumed = Path("run"), Path("resumed")
    surefoot("train", "--config", "run.yaml", "--run-dir", run, *tiny, "--rollout.engine", engine).succeeded()
    state = newest(run)
    assert line in (run / "log.txt").read_text()
    levels = column(run, "curriculum/level")
    assert np.array_equal(state["collector"]["envs"]["parameters"]["wind"], np.linspace(0, levels[-2], 4))
    assert state["hooks"]["curriculum"]["level"] == levels[-1] > levels[0]
    assert column(run, "env/distance")[-1] > 0
    distances, best = column(run, "eval/distance"), read_checkpoint(run / "best.safetensors")
    assert len(distances) == 3
    assert (best["best_metric"], best["best_score"]) == ("-distance", -min(distances))

    resume_from(run, MIDDLE, resumed)
    assert [record["step"] for record in records(resumed)] == [record["step"] for record in records(run)]
    assert rest_of(records(resumed), MIDDLE) == rest_of(records(run), MIDDLE)
    assert_same({**newest(resumed), "best_score": None}, {**state, "best_score": None})
