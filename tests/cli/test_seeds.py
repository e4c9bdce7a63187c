"""`surefoot train --seeds`, what resume makes of a folder, and `surefoot compare`."""

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.cli.processes import Finished, start, surefoot
from tests.cli.runs import TINY, records, saved_steps

pytestmark = pytest.mark.xdist_group("seeds")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, Finished, Finished]:
    """Two seeds, of which one fails at first: the folder, and what the two commands said."""
    folder = tmp_path_factory.mktemp("seeds")
    kwargs = json.dumps({"file": str(folder / "failed")})
    settings = (*TINY, "--env.kwargs", kwargs, "--steps", 64, "--train.eval_episodes", 2, "--rollout.engine", "local")
    env = "tests.cli.odd_envs:FirstFails-v0"
    first = surefoot("train", env, "--seeds", "4,5", "--run-dir", folder / "runs", *settings)
    return folder / "runs", first, surefoot("resume", folder / "runs")


def test_a_seed_that_fails_does_not_stop_the_others(trained):
    folder, first, _ = trained
    assert first.code == 1
    assert "the cart is broken" in first.err
    assert f"'surefoot resume {folder}' continues them" in first.out
    assert sum(f"{seed}  finished" in first.out for seed in (4, 5)) == 1


def test_resume_trains_what_is_missing(trained):
    folder, first, second = trained
    second.succeeded()
    assert "Traceback" not in second.err
    failed = 4 if "seed 4    failed" in first.out else 5
    assert f"seed {9 - failed}    finished at step 64" in second.out
    assert [saved_steps(folder / f"seed_{seed}")[0] for seed in (4, 5)] == [64, 64]
    assert all(len(records(folder / f"seed_{seed}")) == 2 for seed in (4, 5))
    text = (folder / "report.html").read_text()
    assert "2 runs, 1 configuration" in text
    assert "2 of 2 finished" in text
    # The aggregates of two runs, with what so few runs mean.
    assert "mean reward of the last evaluation" in second.out
    assert "few runs" in second.out


@pytest.mark.parametrize("lost", ["seed_5", "seed_5 results.json", "seed_5/* results.json", "more steps"])
def test_a_deleted_run_is_never_a_new_start(trained, tmp_path, lost):
    folder = Path(shutil.copytree(trained[0], tmp_path / "copy"))
    shutil.rmtree(folder / "seed_5")
    if "results.json" in lost:
        (folder / "results.json").unlink()
    if "*" in lost:
        (folder / "seed_5").mkdir()
    steps = ("--steps", 128) if lost == "more steps" else ()
    message = surefoot("resume", folder, *steps).refused()
    assert f"the run of seed 5 had begun, but {folder / 'seed_5'} has none; restore it" in message


def test_a_folder_is_compared_with_a_run(trained, tmp_path):
    folder, page = trained[0], tmp_path / "page.html"
    found = json.loads(
        surefoot("compare", folder, folder / "seed_4", "--names", "both", "one", "--json", "--output", page)
        .succeeded()
        .out
    )
    (task,) = found["tasks"].values()
    # A run that is given twice counts once, with the last name.
    assert {name: len(own["scores"]) for name, own in task.items()} == {"both": 1, "one": 1}
    assert "Probability of improvement" in page.read_text()
    out = surefoot("compare", folder, "--output", page).succeeded().out
    assert "one run" not in out
    assert f"page      {page}" in out


def test_ctrl_c_saves_all_seeds(tmp_path):
    folder = tmp_path / "seeds"
    command = ("train", "CartPole-v1", "--seeds", "1-2", "--run-dir", folder, *TINY, "--steps", 10_000_000)
    going = start(*command)
    metrics = [folder / f"seed_{seed}" / "metrics.jsonl" for seed in (1, 2)]
    going.wait_until(lambda: all(file.exists() and file.stat().st_size > 0 for file in metrics))
    going.send(signal.SIGINT)
    done = going.wait()
    assert done.code == 130
    assert f"missing   seeds 1, 2; 'surefoot resume {folder}' continues them" in done.out
    for seed in (1, 2):
        last = records(folder / f"seed_{seed}")[-1]["step"]
        assert saved_steps(folder / f"seed_{seed}")[0] == last > 0
        assert "SIGTERM received" in (folder / f"seed_{seed}" / "log.txt").read_text()


def test_what_is_refused(trained, tmp_path):
    folder = trained[0]
    base = ("train", "CartPole-v1", *TINY, "--run-dir", tmp_path / "new")
    assert "such as 1,2,3 or 1-5" in surefoot(*base, "--seeds", "3-1").refused()
    assert "cannot be combined with --seed" in surefoot(*base, "--seeds", "1", "--seed", 2).refused()
    assert "cannot be combined with --seed" in surefoot(*base, "--seeds", "1", "--train.seed", 2).refused()
    assert "best_metric" in surefoot(*base, "--seeds", "1", "--train.best_metric", "wins").refused()
    assert not (tmp_path / "new").exists()
    other = ("train", "CartPole-v1", *TINY, "--seeds", "4", "--run-dir", folder)
    assert "trained with another env.id" in surefoot(*other).refused()
    for command in ("doctor", "evaluate"):
        assert (
            f"holds several seeds; pass one of them, such as {folder / 'seed_4'}" in surefoot(command, folder).refused()
        )
    assert "contains a run" in surefoot(*other[:-1], folder / "seed_4").refused()


def test_what_cannot_be_compared(trained, tmp_path):
    folder = trained[0]
    assert "pass at least one" in surefoot("compare").refused()
    assert "pass one name per run or folder: 1, not 2" in surefoot("compare", folder, "--names", "a", "b").refused()
    assert "have no 'cvr'; did you mean 'cvar'?" in surefoot("compare", folder, "--metric", "cvr").refused()
    assert "does not exist" in surefoot("compare", tmp_path / "nowhere").refused()
    references = tmp_path / "scores.yaml"
    references.write_text("Other-v0: [0, 1]\n")
    message = surefoot("compare", folder, "--normalize", references).refused()
    assert "has no reference scores for tests.cli.odd_envs:FirstFails-v0" in message
    (tmp_path / "notes.html").write_text("mine")
    assert "is not a report" in surefoot("compare", folder, "--output", tmp_path / "notes.html").refused()


def test_runs_without_evaluations_are_named(tmp_path):
    surefoot("train", "CartPole-v1", "--run-dir", tmp_path / "run", *TINY, "--steps", 32).succeeded()
    message = surefoot("compare", tmp_path / "run").refused()
    assert f"no evaluation was recorded in {tmp_path / 'run'}" in message
    assert "train.eval_episodes" in message
